// Shows a typed question at once, where its turn will be, until the server has drawn that.
(() => {
  window.echo?.abort();
  window.echo = new AbortController();
  const { signal } = window.echo;
  const LONGEST = 5000; // milliseconds: a question that the server refuses has no turn
  const echo = document.querySelector(".echo");
  const find = (part) => document.querySelector(`[data-testid=stChatInput${part}]`);
  const messages = () => document.querySelectorAll(".st-key-turns .stChatMessage").length;
  let before = 0, timer = 0;

  const clear = () => { if (echo.textContent) echo.textContent = ""; };
  const show = () => {
    const text = find("TextArea").value.trim();
    if (!text || find("SubmitButton").disabled) return;
    [echo.textContent, before] = [text, messages()];
    clearTimeout(timer);
    timer = setTimeout(clear, LONGEST);
  };
  const pressed = (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing && event.target === find("TextArea")) show();
  };
  const clicked = (event) => { if (find("SubmitButton")?.contains(event.target)) show(); };
  const turns = new MutationObserver(() => { if (messages() > before) clear(); });
  turns.observe(document.querySelector(".st-key-page"), { subtree: true, childList: true });
  signal.addEventListener("abort", () => turns.disconnect());
  document.addEventListener("keydown", pressed, { signal, capture: true });
  document.addEventListener("click", clicked, { signal, capture: true });
})();
