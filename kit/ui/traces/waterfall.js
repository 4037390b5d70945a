// Puts the waterfall of a trace into the page, and says which of its spans was chosen.
export default ({ parentElement, data, setTriggerValue }) => {
  const hadFocus = parentElement.contains(document.activeElement);
  let list = parentElement.querySelector(".waterfall");
  if (!list) {
    list = document.createElement("div");
    list.className = "waterfall";
    parentElement.append(list);
  }
  list.innerHTML = data;
  for (const row of list.querySelectorAll("[data-pick]")) {
    row.onclick = () => setTriggerValue("picked", row.dataset.pick);
  }
  // Whoever chooses by the keyboard goes on from there.
  if (hadFocus) list.querySelector("[aria-current]")?.focus();
};
