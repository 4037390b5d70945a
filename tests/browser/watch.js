// Remembers what the page showed and when, in milliseconds since it was opened: short-lived text cannot be polled for.
window.seen = {
  most: 0, // chat messages ever shown at once
  steps: [], // every line of every step: message, step, place in the step, when first seen
  texts: [], // every state of the newest message's prose
  badges: {}, // badge under an answer -> when first seen
  bare: 0, // frames in which the page was there without its style
  jump: 0, // pixels by which an answer moved most between two frames, once it had begun
  alone: 0, // longest time from Enter until the question was on the page
  marks: {}, // when the person last pressed Enter, or clicked
  origin: performance.timeOrigin, // wall clock of 0
};

const look = () => {
  const at = performance.now();
  const messages = [...document.querySelectorAll('[data-testid=stChatMessage]')];
  window.seen.most = Math.max(window.seen.most, messages.length);
  messages.forEach((message, turn) => message.querySelectorAll('details').forEach((step) => lines(step, turn, at)));
  for (const badge of document.querySelectorAll('[data-testid=stChatMessage] .stMarkdownBadge')) {
    const word = badge.innerText.trim();
    if (!(word in window.seen.badges)) window.seen.badges[word] = at;
  }
  if (messages.length) prose(messages[messages.length - 1], at);
};

const lines = (step, turn, at) => {
  const name = step.querySelector('summary strong')?.innerText;
  if (!name) return;
  [...step.querySelectorAll('[data-testid=stCaptionContainer]')].forEach((caption, place) => {
    const line = caption.textContent.trim(); // its box may be closed
    const known = (one) => one.turn === turn && one.name === name && one.place === place;
    if (line && !window.seen.steps.some(known)) window.seen.steps.push({turn, name, place, line, at});
  });
};

const prose = (message, at) => {
  const text = [...message.querySelectorAll('[data-testid=stMarkdown]')]
    .filter((part) => !part.closest('details') && !part.querySelector('.stMarkdownBadge, [data-testid=stCaptionContainer]'))
    .map((part) => part.innerText)
    .join('\n');
  if (text && window.seen.texts.at(-1)?.text !== text) window.seen.texts.push({text, at});
};

let answer = {}, question = null, earlier = null; // the answer that was the newest when the question was asked
const newest = () => [...document.querySelectorAll('[class*=st-key-answer-]')].at(-1);
const frame = () => {
  const page = document.querySelector('.st-key-page');
  if (page?.clientHeight > 2 && !getComputedStyle(page).getPropertyValue('--ink')) window.seen.bare += 1;
  if (question && page?.innerText.split(question.text).length > question.times) {
    window.seen.alone = Math.max(window.seen.alone, performance.now() - question.at);
    question = null;
  }
  const box = newest();
  const top = box !== earlier && box?.innerText ? box.getBoundingClientRect().top : null;
  if (top !== null && box === answer.box && answer.top !== null) window.seen.jump = Math.max(window.seen.jump, Math.abs(top - answer.top));
  answer = {box, top};
  requestAnimationFrame(frame);
};
requestAnimationFrame(frame);

const asked = (e) => {
  const text = e.key === 'Enter' && e.target.value;
  if (text) earlier = newest();
  if (text) question = {text, at: performance.now(), times: document.querySelector('.st-key-page').innerText.split(text).length};
};
document.addEventListener('keydown', asked, true);
new MutationObserver(look).observe(document, {subtree: true, childList: true, characterData: true});
document.addEventListener('keydown', (e) => e.key === 'Enter' && (window.seen.marks.enter = performance.now()), true);
document.addEventListener('click', () => (window.seen.marks.click = performance.now()), true);
