// The run table. It sorts, filters, groups and selects in the browser, and draws only the visible rows.
const ROW = 30;
const SPARE = 8;
const BAR = 45;
const FEWEST_LINES = 3;

const plain = new Intl.NumberFormat("en", { maximumSignificantDigits: 4, useGrouping: false });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });

function number(value) {
  if (missing(value)) return "";
  if (Math.abs(value) >= 100000) return compact.format(value);
  return plain.format(value).replace("-", "−");
}

function count(value) {
  if (missing(value)) return "";
  if (value >= 10000) return compact.format(value);
  return String(value < 100 ? Math.round(value * 10) / 10 : Math.round(value));
}

function duration(minutes) {
  if (missing(minutes)) return "";
  const seconds = Math.round(minutes * 60);
  if (seconds < 60) return `${seconds}s`;
  const [hours, rest] = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60)];
  if (hours >= 24) return `${Math.floor(hours / 24)}d ${hours % 24}h`;
  return hours ? `${hours}h ${String(rest).padStart(2, "0")}m` : `${rest}m ${String(seconds % 60).padStart(2, "0")}s`;
}

function start(seconds) {
  if (missing(seconds)) return "";
  const date = new Date(seconds * 1000);
  return `${day.format(date)} ${clock.format(date)}`;
}

const BUILT_IN = [
  { key: "name", kind: "name" },
  { key: "preset" },
  { key: "agent" },
  { key: "environment" },
  { key: "framework" },
  { key: "settings" },
  { key: "seed", format: (value) => (value === null ? "" : String(value)), right: true },
  { key: "state", kind: "state" },
  { key: "steps", format: count, right: true },
  { key: "speed", format: count, right: true },
  { key: "last", format: number, right: true },
  { key: "best", format: number, right: true },
  { key: "target", format: count, right: true },
  { key: "start", format: start, right: true },
  { key: "minutes", format: duration, right: true },
  { key: "note" },
];
const PARAMETER = "parameter:";
const FONT = "12px Inter, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Liberation Sans', Arial, sans-serif";
const WIDEST = { name: 300, preset: 220, agent: 180, environment: 220, settings: 260, note: 240 };
const WIDEST_TITLE = 170;
const NARROWEST = { name: 200, preset: 84, agent: 70, environment: 84, settings: 80, note: 80 };
const WORDS = ["name", "experiment", "detail", "preset", "agent", "environment", "framework", "state", "note", "settings"];

const anyValue = (value) => (typeof value === "number" ? number(value) : String(value ?? ""));

// The columns and titles that the server chose.
function columnsOf({ columns, titles }) {
  const known = new Map(BUILT_IN.map((column) => [column.key, column]));
  const given = JSON.parse(titles || "{}");
  const parameter = (key) => ({ key, full: key.slice(PARAMETER.length), format: anyValue, right: true });
  const made = ["name", ...columns].map((key) => known.get(key) ?? (key.startsWith(PARAMETER) ? parameter(key) : null));
  return made.filter(Boolean).map((column) => ({ ...column, title: given[column.key] ?? column.full ?? "" }));
}

// A cell of the exported table, in quotes if it contains commas, quotes or new lines.
function quoted(value) {
  const text = String(value ?? "");
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function compare(a, b) {
  if (missing(a) || missing(b)) return missing(a) - missing(b);
  return typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b;
}

function matcher(filter, regex) {
  if (!filter) return () => true;
  if (!regex) {
    const fits = finds(filter);
    return (row) => fits(row.words);
  }
  const pattern = new RegExp(filter, "i");
  return (row) => pattern.test(row.words);
}

export function render({ model, el }) {
  const rows = new Map();
  const folded = new Set();
  const unfolded = new Set(); // runs whose workers or agents are shown
  let lines = [];
  let anchor = null;
  let isTold = false;

  const search = finder("search", "Filter runs");
  Object.assign(search, { spellcheck: false, value: model.filter });
  const regex = element("button", "toggle", ".*", { title: "Filter by a regular expression", "aria-label": "Regular expression" });
  const said = element("span", "said", "", { role: "status" });
  const clear = element("button", "plain", "Clear selection");
  const archived = element("button", "plain archived");
  const edit = element("button", "action edit", "Edit", { title: "Name, tag, archive or delete the selected runs" });
  const choose = element("button", "action", "Columns");
  const exported = element("button", "action", "Export", { title: "Save the table as CSV, as it is shown" });
  const bar = box("div", "bar", search, regex, said, clear, archived, element("span", "gap"), edit, choose, exported);
  let columns = columnsOf(model);
  let shown = [];

  const [head, body] = [element("div", "row head"), element("div", "body")];
  const scroller = box("div", "scroller", head, body);
  scroller.setAttribute("role", "grid");
  scroller.setAttribute("aria-label", "Runs");
  const toast = element("div", "toast", "", { role: "status" });
  const root = box("div", "runs", bar, scroller, toast);
  const all = checkbox({ title: "Select every run shown", "aria-label": "Select every run shown" });
  const allCell = box("label", "cell check", all);
  function makeHead() {
    head.replaceChildren(allCell);
    for (const column of columns) {
      const cell = element("button", `cell title ${column.key}${column.right ? " right" : ""}`, column.title);
      cell.dataset.key = column.key;
      cell.title = column.full ?? "";
      cell.onclick = () => {
        const down = `-${column.key}`;
        const first = column.right ? down : column.key;
        model.sort = model.sort === first ? (first === down ? column.key : down) : first;
      };
      head.append(cell);
    }
  }
  makeHead();

  function take(row) {
    row.words = WORDS.map((key) => row[key] ?? "").join(" ").toLowerCase() + (row.seed === null ? "" : ` seed ${row.seed}`)
      + (row.evaluates ? " evaluation" : "") + row.tags.map((tag) => ` ${tag.toLowerCase()}`).join("");
    for (const [path, value] of Object.entries(row.values)) row[PARAMETER + path] = value;
    rows.set(row.id, row);
    widen(row);
  }

  function select(ids, on) {
    const chosen = new Set(model.selected);
    for (const id of ids) on ? chosen.add(id) : chosen.delete(id);
    model.selected = [...chosen];
  }

  // Columns are as wide as their widest cell. They never become narrower, so columns do not move while numbers change.
  const widths = new Map();
  const pen = document.createElement("canvas").getContext("2d");
  function widen(row) {
    for (const column of columns) {
      const value = row[column.key];
      const text = column.format ? column.format(value) : value ?? "";
      pen.font = column.kind === "name" ? `600 ${FONT}` : FONT;
      let width = pen.measureText(text).width + 14;
      if (column.kind === "name") width += 18 + extras(row).reduce((sum, [, text]) => sum + pen.measureText(text).width + 22, 0);
      if (column.kind === "state") width += 14;
      width = Math.ceil(Math.min(width, WIDEST[column.key] ?? 120) / 2) * 2;
      if (width > (widths.get(column.key) ?? 0)) widths.set(column.key, width);
    }
  }
  function layOut() {
    const wanted = Object.fromEntries(columns.map((column) => {
      pen.font = `500 ${FONT}`;
      const title = Math.min(Math.ceil(pen.measureText(column.title).width) + (column.right ? 14 : 26), WIDEST_TITLE);
      return [column.key, Math.max(title, widths.get(column.key) ?? 0)];
    }));
    const room = scroller.clientWidth - 26 - 20;
    let tooMuch = Object.values(wanted).reduce((a, b) => a + b, 0) - room;
    for (const key of ["settings", "note", "preset", "name", "environment", "agent"].filter((key) => key in wanted)) {
      if (tooMuch <= 0) break;
      const less = Math.min(tooMuch, Math.max(0, wanted[key] - NARROWEST[key]));
      wanted[key] -= less;
      tooMuch -= less;
    }
    const tracks = columns.map((column) => (column.key in WIDEST ? `minmax(${wanted[column.key]}px, ${wanted[column.key]}fr)` : `${wanted[column.key]}px`));
    scroller.style.setProperty("--tracks", `26px ${tracks.join(" ")}`);
    scroller.style.setProperty("--width", `${26 + 20 + Object.values(wanted).reduce((a, b) => a + b, 0)}px`);
  }

  function arrange() {
    layOut();
    let fits = () => true;
    search.classList.remove("wrong");
    search.title = "";
    try {
      fits = matcher(model.filter, model.regex);
    } catch (error) {
      search.classList.add("wrong");
      search.title = `Not a regular expression: ${error.message}`;
    }
    const down = model.sort.startsWith("-");
    const key = down ? model.sort.slice(1) : model.sort;
    const hidden = [...rows.values()].filter((row) => row.archived).length;
    shown = [...rows.values()].filter((row) => fits(row) && (model.archived || !row.archived));
    shown.sort((a, b) => {
      const [x, y] = [a[key], b[key]];
      if (missing(x) !== missing(y)) return missing(x) ? 1 : -1;
      return (down ? compare(y, x) : compare(x, y)) || compare(a.id, b.id);
    });
    lines = model.grouped ? byGroup(shown) : shown.flatMap(withParts);
    for (const cell of head.querySelectorAll(".title")) {
      const sorted = cell.dataset.key === key;
      cell.setAttribute("aria-sort", sorted ? (down ? "descending" : "ascending") : "none");
    }
    const chosen = model.selected.filter((id) => rows.has(id)).length;
    const total = rows.size.toLocaleString("en");
    archived.hidden = hidden === 0;
    archived.textContent = model.archived ? "Hide archived" : `${hidden.toLocaleString("en")} archived`;
    edit.hidden = !model.editable;
    edit.disabled = chosen === 0;
    const visible = shown.length === rows.size ? total : `${shown.length.toLocaleString("en")} of ${total}`;
    said.textContent = !isTold ? "Reading …" : `${visible} ${rows.size === 1 ? "run" : "runs"} · ${chosen} selected`;
    clear.hidden = chosen === 0;
    const here = new Set(model.selected);
    const inSight = shown.filter((row) => here.has(row.id)).length;
    all.disabled = !isTold;
    all.checked = shown.length > 0 && inSight === shown.length;
    all.indeterminate = inSight > 0 && inSight < shown.length;
    all.onchange = () => select(shown.map((row) => row.id), all.checked);
    body.style.height = `${Math.max(1, lines.length) * ROW}px`;
    makeRoom();
    draw();
  }

  // With few runs, the table is low, and the plot has more room. It never becomes lower, so a filter moves nothing.
  let mostLines = FEWEST_LINES;
  function makeRoom() {
    mostLines = Math.max(mostLines, lines.length);
    document.documentElement.style.setProperty("--table", `${BAR + (mostLines + 1) * ROW + 14}px`);
  }

  function byGroup(shown) {
    const groups = new Map();
    for (const row of shown) {
      if (!groups.has(row.group)) groups.set(row.group, []);
      groups.get(row.group).push(row);
    }
    const made = [];
    for (const name of [...groups.keys()].sort(compare)) {
      const members = groups.get(name);
      made.push({ group: name, members });
      if (!folded.has(name)) made.push(...members.flatMap(withParts));
    }
    return made;
  }

  const withParts = (row) => [{ row }, ...(unfolded.has(row.id) ? row.parts.map((part) => ({ part, of: row })) : [])];
  function unfold(row, on) {
    on ? unfolded.add(row.id) : unfolded.delete(row.id);
    arrange();
  }

  // Each line keeps its element while its text changes. If an element were replaced during a click, the click would be
  // lost.
  let drawn = new Map();
  let at = 0; // the line that Tab selects; the arrow keys move from this line
  body.onkeydown = (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1, Home: -lines.length, End: lines.length, PageDown: 10, PageUp: -10 }[event.key];
    const line = lines[at];
    if (by !== undefined) {
      event.preventDefault();
      at = Math.min(Math.max(at + by, 0), lines.length - 1);
      const [top, height] = [at * ROW, scroller.clientHeight - ROW];
      if (top < scroller.scrollTop) scroller.scrollTop = top;
      if (top + ROW > scroller.scrollTop + height) scroller.scrollTop = top + ROW - height;
      draw();
      body.querySelector('[tabindex="0"]')?.focus({ preventScroll: true });
    } else if (event.key === "Enter") {
      event.preventDefault();
      event.target.click();
    } else if (line?.members && (event.key === "ArrowLeft" || event.key === "ArrowRight")) {
      event.key === "ArrowLeft" ? folded.add(line.group) : folded.delete(line.group);
      arrange();
    } else if (line?.row?.parts.length && (event.key === "ArrowLeft" || event.key === "ArrowRight")) {
      unfold(line.row, event.key === "ArrowRight");
    }
  };
  function draw() {
    const first = Math.max(0, Math.floor(scroller.scrollTop / ROW) - SPARE);
    const last = Math.min(lines.length, Math.ceil((scroller.scrollTop + scroller.clientHeight) / ROW) + SPARE);
    const chosen = new Set(model.selected);
    const wanted = new Map();
    if (at < first || at >= last) at = Math.min(first, Math.max(0, lines.length - 1));
    for (let index = first; index < last; index++) {
      const { row, group, part, of } = lines[index];
      const key = row ? `run ${row.id}` : part ? `part ${of.id} ${part.name}` : `group ${group}`;
      const made = row ? rowLine(row, chosen) : part ? partLine(part) : groupLine(lines[index], chosen);
      const line = drawn.has(key) ? renewed(drawn.get(key), made) : made;
      line.style.top = `${index * ROW}px`;
      const focused = line.querySelector("input, .cell.name");
      focused.tabIndex = index === at ? 0 : -1;
      focused.onfocus = () => { at = index; };
      wanted.set(key, line);
    }
    if (!lines.length && rows.size) wanted.set("nothing", element("div", "nothing", "No run matches this filter."));
    drawn = wanted;
    let place = body.firstChild;
    for (const line of wanted.values()) {
      if (line === place) place = place.nextSibling;
      else body.insertBefore(line, place);
    }
    while (place) {
      const next = place.nextSibling;
      place.remove();
      place = next;
    }
  }

  function renewed(line, made) {
    line.className = made.className;
    line.onclick = made.onclick;
    if (made.hasAttribute("aria-selected")) line.setAttribute("aria-selected", made.getAttribute("aria-selected"));
    const [box, newBox] = [line, made].map((of) => of.querySelector("input"));
    if (box) {
      Object.assign(box, { checked: newBox.checked, indeterminate: newBox.indeterminate, onchange: newBox.onchange });
      box.style.accentColor = newBox.style.accentColor;
    }
    [...made.children].slice(1).forEach((cell, place) => {
      const old = line.children[place + 1];
      if (old.outerHTML === cell.outerHTML) return;
      old.title = cell.title;
      old.replaceChildren(...cell.childNodes);
    });
    return line;
  }

  function rowLine(row, chosen) {
    const line = element("div", "row line");
    const on = chosen.has(row.id);
    line.classList.toggle("on", on);
    line.dataset.id = row.id;
    line.setAttribute("role", "row");
    line.setAttribute("aria-selected", String(on));
    const check = checkbox({ checked: on, "aria-label": `Select ${row.name} ${row.detail}` });
    if (on && row.colour) check.style.accentColor = row.colour;
    line.append(box("span", "cell check", check), ...columns.map((column) => cellOf(column, row, on)));
    line.onclick = (event) => {
      event.preventDefault();
      if (event.shiftKey && anchor) return selectTo(row.id, !on);
      anchor = row.id;
      select([row.id], !on);
    };
    return line;
  }

  // A worker or an agent is a part of its run. It is shown, but users cannot select it.
  function partLine(part) {
    const line = box("div", "row line part", element("span", "cell check"), ...columns.map((column) => partCell(column, part)));
    line.setAttribute("role", "row");
    return line;
  }

  function partCell(column, part) {
    const value = part[column.key];
    const cell = element("span", `cell ${column.key}${column.right ? " right" : ""}`);
    if (column.kind === "name") {
      cell.append(element("span", "", part.name));
      if (part.evaluates) cell.append(element("em", "badge", "evaluation"));
      if (part.remark) cell.append(element("em", "badge wrong", `⚠ ${part.remark}`));
    } else if (value !== undefined) {
      cell.textContent = column.format ? column.format(value) : value;
    }
    return cell;
  }

  function selectTo(id, on) {
    const ids = lines.filter((line) => line.row).map((line) => line.row.id);
    const [from, to] = [ids.indexOf(anchor), ids.indexOf(id)].sort((a, b) => a - b);
    select(from < 0 ? [id] : ids.slice(from, to + 1), on);
  }

  // The details and badges after a run's name.
  function extras(row) {
    return [
      ["", row.detail],
      ["badge", row.evaluates ? "evaluation" : ""],
      ["badge wrong", row.remark ? `⚠ ${row.remark}` : ""],
      ["badge", row.archived ? "archived" : ""],
      ...row.tags.map((tag) => ["badge tag", tag]),
    ].filter(([, text]) => text);
  }

  function partsFold(row) {
    const on = unfolded.has(row.id);
    const fold = element("button", "fold", on ? "▾" : "▸", { title: on ? "Hide the workers or agents" : "Show each worker or agent", tabIndex: -1, "aria-expanded": String(on) });
    fold.onclick = (event) => {
      event.stopPropagation();
      unfold(row, !on);
    };
    return fold;
  }

  function cellOf(column, row, on) {
    const cell = element("span", `cell ${column.key}${column.right ? " right" : ""}`);
    const value = row[column.key];
    if (column.kind === "name") {
      cell.append(swatch(on && row.colour, "swatch"), element("b", "", row.name));
      if (row.parts.length) cell.append(partsFold(row));
      for (const [kind, text] of extras(row)) cell.append(element("em", kind, text));
      cell.title = [row.id, row.remark, row.note].filter(Boolean).join("\n");
    } else if (column.kind === "state") {
      cell.append(element("i", `dot ${value}`), document.createTextNode(row.doing || value));
      cell.title = row.error || value;
    } else {
      cell.textContent = column.format ? column.format(value) : value;
      if (!column.format && value) cell.title = value;
    }
    return cell;
  }

  function groupLine({ group, members }, chosen) {
    const on = members.filter((row) => chosen.has(row.id)).length;
    const onclick = (event) => event.stopPropagation();
    const check = checkbox({
      checked: on === members.length, indeterminate: on > 0 && on < members.length, "aria-label": `Select the group ${group}`,
      onclick, onchange: () => select(members.map((row) => row.id), on < members.length),
    });
    const cell = box("label", "cell check", check);
    cell.onclick = onclick;
    const fold = element("i", "fold", folded.has(group) ? "▸" : "▾");
    const count = element("em", "", `${members.length} ${members.length === 1 ? "run" : "runs"}`);
    const line = box("div", "row group", cell, box("span", "cell", fold, element("b", "", group || "none"), count));
    line.onclick = () => {
      folded.has(group) ? folded.delete(group) : folded.add(group);
      arrange();
    };
    return line;
  }

  function dialog(title, ...parts) {
    const form = box("form", "", element("h2", "", title), ...parts);
    const made = box("dialog", "", form);
    made.onclose = () => made.remove();
    made.onclick = (event) => { if (event.target === made) made.close(); };
    form.onsubmit = (event) => event.preventDefault();
    root.append(made);
    made.showModal();
    return made;
  }

  function field(label, made, value, hint) {
    Object.assign(made, { value, placeholder: hint ?? "" });
    return box("label", "field", label, made);
  }

  const tell = (what, ids, changes) => { model.told = JSON.stringify({ what, ids, changes, count: (asked += 1) }); };
  let asked = 0;

  edit.onclick = () => {
    const chosen = model.selected.map((id) => rows.get(id)).filter(Boolean);
    if (!chosen.length) return;
    const ids = chosen.map((row) => row.id);
    const alike = (of) => (chosen.every((row) => String(of(row)) === String(of(chosen[0]))) ? of(chosen[0]) : "");
    const [name, tags, note] = [element("input"), element("input"), element("textarea")];
    const before = { name: alike((row) => row.called), tags: alike((row) => row.tags.join(", ")), note: alike((row) => row.note) };
    const several = chosen.length > 1 ? "unchanged" : "";
    const keep = element("button", "action main", "Save");
    const put = element("button", "action", chosen.every((row) => row.archived) ? "Unarchive" : "Archive", { type: "button" });
    const drop = element("button", "action danger", "Delete …", { type: "button" });
    const buttons = box("div", "buttons", put, drop, element("span", "gap"), keep);
    const parts = [field("Tags, separated by commas", tags, before.tags, several), field("Note", note, before.note, several), buttons];
    if (chosen.length === 1) parts.unshift(field("Name", name, before.name, chosen[0].experiment));
    const made = dialog(chosen.length === 1 ? chosen[0].name : `${chosen.length} runs`, ...parts);
    keep.onclick = () => {
      const changes = {};
      if (chosen.length === 1 && name.value !== before.name) changes.name = name.value;
      if (tags.value !== before.tags) changes.tags = tags.value.split(",").map((tag) => tag.trim()).filter(Boolean);
      if (note.value !== before.note) changes.note = note.value;
      if (Object.keys(changes).length) tell("annotate", ids, changes);
      made.close();
    };
    put.onclick = () => {
      tell("annotate", ids, { archived: put.textContent === "Archive" });
      made.close();
    };
    drop.onclick = () => {
      made.close();
      const [yes, no] = [element("button", "action danger", "Delete"), element("button", "action", "Cancel")];
      const choice = box("div", "buttons", element("span", "gap"), no, yes);
      const count = ids.length === 1 ? "this run" : `these ${ids.length} runs`;
      const sure = dialog(`Delete ${count}?`, element("p", "", "All files of a run, also checkpoints and videos, are moved to the folder .trash of this directory. You can restore them."), choice);
      no.onclick = () => sure.close();
      yes.onclick = () => { tell("delete", ids, {}); sure.close(); };
      no.focus();
    };
  };

  choose.onclick = () => {
    const find = finder("", "Find a column");
    const list = element("div", "columns");
    const usual = element("button", "action", "Reset", { type: "button" });
    const close = element("button", "action main", "Done");
    const made = dialog("Columns", find, list, box("div", "buttons", usual, element("span", "gap"), close));
    const show = () => {
      const fits = finds(find.value);
      const offered = JSON.parse(model.offered || "[]").filter(([key, title]) => fits(title));
      let above = "";
      list.replaceChildren(...offered.slice(0, 300).flatMap(([key, title, group]) => {
        const check = checkbox({ checked: model.columns.includes(key) });
        check.onchange = () => { model.columns = check.checked ? [...model.columns, key] : model.columns.filter((other) => other !== key); };
        const heading = group === above ? [] : [element("h3", "", group)];
        above = group;
        return [...heading, box("label", "choice", check, element("span", "", title))];
      }));
    };
    find.oninput = show;
    usual.onclick = () => { tell("columns", [], {}); made.close(); };
    close.onclick = () => made.close();
    show();
  };

  exported.onclick = () => {
    const keys = ["id", "name", "tags", ...columns.slice(1).map((column) => column.key)];
    const titles = new Map(columns.map((column) => [column.key, column.full ?? column.title]));
    const cell = (row, key) => (key === "tags" ? row.tags.join(" ") : key === "start" && row.start !== null ? new Date(row.start * 1000).toISOString() : row[key]);
    const text = [keys.map((key) => titles.get(key) ?? key), ...shown.map((row) => keys.map((key) => cell(row, key)))];
    download(new Blob([text.map((line) => line.map(quoted).join(",")).join("\n") + "\n"], { type: "text/csv" }), "runs.csv");
  };
  archived.onclick = () => { model.archived = !model.archived; };

  let fading = null;
  model.on("answer", () => {
    const { text, undo } = JSON.parse(model.answer);
    toast.replaceChildren(element("span", "", text));
    if (undo) {
      const back = element("button", "plain", "Undo");
      back.onclick = () => { tell("undo", [], {}); toast.classList.remove("shown"); };
      toast.append(back);
    }
    toast.classList.add("shown");
    clearTimeout(fading);
    fading = setTimeout(() => toast.classList.remove("shown"), undo ? 20000 : 5000);
  });

  let waiting = null;
  search.oninput = () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => { model.filter = search.value; }, 120);
  };
  regex.onclick = () => { model.regex = !model.regex; };
  clear.onclick = () => { model.selected = []; };
  scroller.onscroll = () => draw();
  new ResizeObserver(() => { layOut(); draw(); }).observe(scroller);

  const showRegex = () => regex.setAttribute("aria-pressed", String(model.regex));
  model.on("sent", () => {
    const sent = JSON.parse(model.sent);
    isTold = true;
    if (sent.whole) rows.clear();
    sent.gone.forEach((id) => rows.delete(id));
    sent.rows.forEach(take);
    arrange();
  });
  model.on(["selected", "sort", "grouped", "archived", "editable"], arrange);
  model.on(["columns", "titles"], () => {
    columns = columnsOf(model);
    drawn = new Map();
    body.replaceChildren();
    widths.clear();
    rows.forEach(widen);
    makeHead();
    arrange();
  });
  model.on("regex", () => { showRegex(); arrange(); });
  model.on("filter", () => { if (search.value !== model.filter) search.value = model.filter; scroller.scrollTop = 0; arrange(); });

  showRegex();
  arrange();
  model.asked += 1;
  return root;
}
