// Keeps the newest turn in view until the reader scrolls up, and again from the next question on or a click on the button.
// Streamlit's own way down, which an input outside of st.bottom gets, loses the end after a few turns.
(() => {
  window.newest?.abort(); // of the question before
  window.newest = new AbortController();
  const { signal } = window.newest;
  const page = document.querySelector(".stMain");
  const button = document.querySelector(".newest");
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const STEP = 36; // pixels a frame: what is being read glides and does not jump
  const RECENT = 400; // milliseconds
  let follows = true, gliding = false, top = page.scrollTop, hand = 0, change = 0;

  const below = () => page.scrollHeight - page.clientHeight - page.scrollTop;
  const glide = () => {
    gliding = follows && !signal.aborted && below() >= 1;
    if (!gliding) return;
    page.scrollTop += still.matches || below() > page.clientHeight ? below() : Math.min(STEP, Math.ceil(below() / 3));
    requestAnimationFrame(glide);
  };
  const look = () => {
    if (follows && !gliding && page.querySelector(".stChatMessage")) glide();
    button.hidden = follows || below() < page.clientHeight / 4;
  };
  const scrolled = () => {
    const now = performance.now();
    // A page that shrinks for a moment moves up as well: beside a change only a hand counts.
    const meant = now - hand < RECENT || now - change > RECENT;
    if (below() < 2) follows = true;
    else if (page.scrollTop < top && meant) follows = false;
    top = page.scrollTop;
    button.hidden = follows || below() < page.clientHeight / 4;
  };
  const touched = (event) => {
    if (!event.key || /^(Page|Arrow)Up$|^Home$/.test(event.key)) hand = performance.now();
  };
  const sizes = new ResizeObserver(look);
  const changes = new MutationObserver(() => { change = performance.now(); });
  for (const box of [page, page.querySelector(".stMainBlockContainer")]) sizes.observe(box);
  changes.observe(page, { subtree: true, childList: true });
  signal.addEventListener("abort", () => { sizes.disconnect(); changes.disconnect(); });
  page.addEventListener("scroll", scrolled, { signal, passive: true });
  for (const kind of ["wheel", "touchmove", "keydown", "pointerdown"]) page.addEventListener(kind, touched, { signal, passive: true });
  button.addEventListener("click", () => { follows = true; look(); }, { signal });
})();
