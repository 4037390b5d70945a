// What a system says on one try, as samples.py wrote it into turns.json.
import { readFileSync } from "node:fs";

const turns = JSON.parse(readFileSync(new URL("turns.json", import.meta.url)));

export default class Provider {
  constructor(options) {
    this.system = options.config.system;
    this.attempts = {};
  }

  id() {
    return "simulated";
  }

  async callApi(prompt, context) {
    const sample = context.test.description;
    this.attempts[sample] = (this.attempts[sample] ?? 0) + 1;
    const text = turns[`${this.system} ${sample} ${this.attempts[sample]}`];
    return text === null ? { error: "503 from the endpoint" } : { output: text };
  }
}
