// Tells a screen reader that a turn works, and how it ended with its answer: what is drawn anew is no live region itself.
(() => {
  window.spoken?.disconnect();
  const PAUSE = 200; // milliseconds without a change: what is read out is whole
  const region = document.querySelector("body > .spoken") ?? document.body.appendChild(document.createElement("div"));
  region.className = "spoken";
  region.setAttribute("role", "status");
  let working = false, before = 0, timer = 0;

  const messages = () => [...document.querySelectorAll(".st-key-turns .stChatMessage")];
  // A turn may end before its Stop button is drawn: the echo of its question is there from the key that sent it.
  const echoed = () => document.querySelector(".echo:not(:empty)") !== null;
  const atWork = () => document.querySelector("[class*=st-key-stop-]") !== null || echoed();
  const say = () => {
    if (!working || atWork()) return;
    working = messages().length > before; // a question that was refused has no turn
    const turn = messages().at(-1);
    const ending = turn?.querySelector(".stMarkdownBadge");
    if (ending && working) {
      const words = [...turn.querySelectorAll(".stMarkdown")].filter((part) => !part.contains(ending)).map((part) => part.innerText);
      const outcome = ending.closest(".stMarkdown").cloneNode(true);
      outcome.querySelectorAll(".stMarkdownBadge").forEach((badge) => badge.remove());
      region.textContent = `${ending.innerText}. ${[outcome.textContent.trim(), ...words].join(" ")}`;
      working = false;
    }
  };
  window.spoken = new MutationObserver(() => {
    if (atWork() && !working) {
      working = true;
      before = echoed() ? messages().length : 0;
      region.textContent = "Working";
    }
    clearTimeout(timer);
    timer = setTimeout(say, PAUSE);
  });
  window.spoken.observe(document.querySelector(".st-key-page"), { subtree: true, childList: true });
})();
