// Plays a turn that has ended again. It sets the moment of a canvas; CSS places the bars for it.
(() => {
  /** What stands on the canvas at a moment: words of that moment, and the phase of each lane.
   * @param {Element} canvas @param {number} moment seconds since the turn began */
  const show = (canvas, moment) => {
    canvas.style.setProperty("--t", String(moment));
    for (const part of canvas.querySelectorAll("[data-from]")) {
      const from = Number(part.dataset.from);
      const until = Number(part.dataset.until ?? Infinity);
      const phase = moment < from ? "waiting" : moment < until ? "working" : "ended";
      if (part.dataset.phase) part.dataset.phase = phase;
      else part.hidden = phase !== "working";
    }
  };

  /** @param {HTMLElement} controls */
  const prepare = (controls) => {
    controls.dataset.ready = "";
    const canvas = controls.closest("[class*=st-key-canvas-]");
    const [button, slider, output, speed, link] = controls.children;
    const end = Number(controls.dataset.end);
    let before = 0; // when the last frame was drawn; 0 while nothing is played
    let moment = end; // a slider rounds to its steps, which at a quarter of the speed are longer than a frame

    const go = (to) => {
      moment = Math.min(end, Math.max(0, to));
      slider.value = moment;
      output.textContent = `${moment.toFixed(1)} s`;
      link.href = `${controls.dataset.address}&at=${moment.toFixed(2)}`;
      show(canvas, moment);
    };
    const stop = () => {
      before = 0;
      button.textContent = "Play";
    };
    const frame = (now) => {
      if (!before || !controls.isConnected) return;
      go(moment + (Number(speed.value) * (now - before)) / 1000);
      before = now;
      if (moment < end) requestAnimationFrame(frame);
      else stop();
    };
    button.addEventListener("click", () => {
      if (before) return stop();
      if (moment >= end) go(0);
      before = performance.now();
      button.textContent = "Pause";
      requestAnimationFrame(frame);
    });
    slider.addEventListener("input", () => {
      stop();
      go(Number(slider.value));
    });
    const asked = Number.parseFloat(controls.dataset.moment);
    if (Number.isFinite(asked)) go(asked);
  };

  document.querySelectorAll(".replay[data-end]:not([data-ready])").forEach(prepare);
})();
