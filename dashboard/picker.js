// A field in which users choose signals.
const MOST_SHOWN = 100;
const USED = "coach-signals-used";

// How often each signal was chosen in this browser. Frequent signals are first in the list.
const used = () => storage.get(USED) ?? {};
const count = (name) => storage.set(USED, { ...used(), [name]: (used()[name] ?? 0) + 1 });

export function render({ model }) {
  const field = element("input", "field", undefined, {
    id: "field", autocomplete: "off", spellcheck: false, placeholder: "Add a signal",
    role: "combobox", "aria-controls": "list", "aria-autocomplete": "list",
  });
  const list = element("div", "list", undefined, { id: "list", hidden: true, role: "listbox", tabIndex: -1 });
  const chosen = box("div", "box", field);
  const root = box("div", "picker", element("label", "", model.title, { htmlFor: "field" }), chosen, list);
  let options = [];
  let active = -1;

  const found = () => {
    const [fitting, counts, taken] = [finds(field.value), used(), new Set(model.value)];
    const fits = model.names.filter((name) => !taken.has(name) && fitting(name));
    return fits.sort((a, b) => (counts[b] ?? 0) - (counts[a] ?? 0));
  };

  function open() {
    const fits = found();
    options = fits.slice(0, MOST_SHOWN).map((name, place) => {
      const onmousedown = (event) => { event.preventDefault(); add(name); };
      return element("div", "option", name, { id: `option-${place}`, role: "option", onmousedown });
    });
    const more = fits.length - options.length;
    const rest = more > 0 ? [element("div", "rest", `${more.toLocaleString("en")} more: type to find them`)] : [];
    list.replaceChildren(...(options.length ? options : [element("div", "rest", "No signal contains this text")]), ...rest);
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
    chosen.querySelectorAll(".chip").forEach((chip) => chip.remove());
    for (const name of model.value) {
      const drop = element("button", "drop", "×", { "aria-label": `Remove ${name}` });
      drop.onclick = () => { model.value = model.value.filter((other) => other !== name); field.focus(); };
      field.before(box("span", "chip", element("span", "name", name), drop));
    }
    if (!list.hidden) open();
  }

  model.on(["value", "names"], show);
  show();
  return root;
}
