// Keeps the newest turn in view until the reader scrolls up, and again from the next question on or a click on the button.
// What is in view is the end of the page; of a turn that is higher than the view, its question with the answer's beginning
// under it, so that nobody lands in the middle of an answer.
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
  const GAP = 6; // pixels between a question and the answer that stands under it
  const SHARE = 1 / 6; // of the view, which may be empty under an answer
  let follows = true, gliding = false, top = page.scrollTop, hand = 0, change = 0;

  /** Returns where the view belongs, and makes room under a short answer so that it can get there. */
  const aim = () => {
    const turns = page.querySelector(".st-key-turns");
    if (!turns) return page.scrollTop; // another page of the app is open
    const room = Number.parseFloat(page.style.getPropertyValue("--room")) || 0;
    const end = page.scrollHeight - page.clientHeight - room;
    const turn = [...turns.children].filter((child) => child.querySelector(".stChatMessage")).at(-1);
    const question = turn?.querySelector(".stChatMessage");
    // The axis of its lanes stays in view under it.
    if (question) turns.style.setProperty("--question", `${question.offsetHeight}px`);
    const answer = turn?.querySelector("[class*=st-key-outcome-]:has(.begun, .stMarkdownBadge)");
    const from = page.getBoundingClientRect().top - page.scrollTop;
    const toolbar = document.querySelector(".stAppHeader").offsetHeight;
    let goal = end;
    let wanted = 0;
    if (answer && !page.querySelector(".echo:not(:empty)") && turn.getBoundingClientRect().top - from < end + toolbar) {
      const beginning = answer.getBoundingClientRect().top - from - toolbar - question.offsetHeight - GAP;
      if (beginning - end <= page.clientHeight * SHARE) {
        goal = beginning;
        wanted = Math.max(0, Math.ceil(goal - end));
      }
    }
    // Over bars the question is short: it hides none that is at work.
    turns.toggleAttribute("data-loose", goal === end);
    // What is taken away at once would move what is read.
    wanted = Math.max(wanted, Math.min(room, page.scrollTop - end));
    if (Math.abs(wanted - room) >= 1) page.style.setProperty("--room", `${wanted}px`);
    return goal;
  };
  const below = () => (follows ? aim() : page.scrollHeight - page.clientHeight) - page.scrollTop;
  const glide = () => {
    const distance = below();
    gliding = follows && !signal.aborted && distance >= 1;
    if (!gliding) return;
    page.scrollTop += still.matches || distance > page.clientHeight ? distance : Math.min(STEP, Math.ceil(distance / 3));
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
