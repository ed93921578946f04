// A field that signals are chosen in. Names come from files: they are text here, never HTML.
const MOST_SHOWN = 100;
const USED = "coach-signals-used";

function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

// How often each signal was chosen in this browser: what is used often stands first.
function used() {
  try {
    return JSON.parse(localStorage.getItem(USED)) ?? {};
  } catch {
    return {};
  }
}

function count(name) {
  const counts = used();
  counts[name] = (counts[name] ?? 0) + 1;
  try {
    localStorage.setItem(USED, JSON.stringify(counts));
  } catch {
    // A browser that keeps nothing sorts by what is known of signals alone.
  }
}

export function render({ model }) {
  const root = element("div", "picker");
  const label = element("label", "", model.title);
  const box = element("div", "box");
  const field = element("input", "field");
  const list = element("div", "list");
  label.htmlFor = field.id = "field";
  list.id = "list";
  list.hidden = true;
  list.setAttribute("role", "listbox");
  field.setAttribute("role", "combobox");
  field.setAttribute("aria-controls", "list");
  field.setAttribute("aria-autocomplete", "list");
  field.autocomplete = "off";
  field.spellcheck = false;
  field.placeholder = "Add a signal";
  box.append(field);
  root.append(label, box, list);
  let options = [];
  let active = -1;

  const found = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const counts = used();
    const chosen = new Set(model.value);
    const fits = model.names.filter((name) => !chosen.has(name) && words.every((word) => name.toLowerCase().includes(word)));
    return fits.sort((a, b) => (counts[b] ?? 0) - (counts[a] ?? 0));
  };

  function open() {
    const fits = found();
    options = fits.slice(0, MOST_SHOWN).map((name, place) => {
      const option = element("div", "option", name);
      option.id = `option-${place}`;
      option.setAttribute("role", "option");
      option.onmousedown = (event) => { event.preventDefault(); add(name); };
      return option;
    });
    const more = fits.length - options.length;
    const rest = more > 0 ? [element("div", "rest", `${more.toLocaleString("en")} more: type to find them`)] : [];
    list.replaceChildren(...(options.length ? options : [element("div", "rest", "No such signal")]), ...rest);
    list.hidden = false;
    field.setAttribute("aria-expanded", "true");
    go(options.length && field.value ? 0 : -1);
  }

  function close() {
    list.hidden = true;
    active = -1;
    field.setAttribute("aria-expanded", "false");
    field.removeAttribute("aria-activedescendant");
  }

  function go(place) {
    active = place;
    options.forEach((option, at) => option.setAttribute("aria-selected", String(at === place)));
    if (place < 0) return field.removeAttribute("aria-activedescendant");
    field.setAttribute("aria-activedescendant", options[place].id);
    options[place].scrollIntoView({ block: "nearest" });
  }

  function add(name) {
    count(name);
    field.value = "";
    model.value = [...model.value, name];
    if (!list.hidden) open();
  }

  field.onfocus = open;
  field.onclick = open;
  field.oninput = open;
  field.onblur = close;
  field.onkeydown = (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (list.hidden) open();
      const by = event.key === "ArrowDown" ? 1 : -1;
      if (options.length) go((active + by + options.length) % options.length);
    } else if (event.key === "Enter" && active >= 0) {
      event.preventDefault();
      add(options[active].textContent);
    } else if (event.key === "Escape" && !list.hidden) {
      event.preventDefault();
      close();
    } else if (event.key === "Backspace" && !field.value && model.value.length) {
      model.value = model.value.slice(0, -1);
    }
  };

  function show() {
    box.querySelectorAll(".chip").forEach((chip) => chip.remove());
    for (const name of model.value) {
      const chip = element("span", "chip");
      const drop = element("button", "drop", "×");
      drop.setAttribute("aria-label", `Remove ${name}`);
      drop.onclick = () => { model.value = model.value.filter((other) => other !== name); field.focus(); };
      chip.append(element("span", "name", name), drop);
      box.insertBefore(chip, field);
    }
    if (!list.hidden) open();
  }

  model.on(["value", "names"], show);
  show();
  return root;
}
