// The field is the first stop of the keyboard, and "/" leads to it from anywhere on the page.
(() => {
  window.firstStop?.abort();
  window.firstStop = new AbortController();
  const writes = (element) => element.isContentEditable || element.matches("input, textarea, select");
  const pressed = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const active = document.activeElement;
    // Later the focus may be nowhere because what had it was drawn anew: then the browser knows where it goes on.
    const begins = event.key === "Tab" && !event.shiftKey && !window.hasBegun;
    const wanted = event.key === "/" && !(active && writes(active));
    const field = document.querySelector("[data-testid=stChatInputTextArea]");
    if (!field || !(begins || wanted)) return;
    event.preventDefault();
    field.focus();
  };
  const { signal } = window.firstStop;
  document.addEventListener("keydown", pressed, { signal, capture: true });
  document.addEventListener("focusin", () => { window.hasBegun = true; }, { signal });
})();
