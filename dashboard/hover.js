// One box at the mouse with the values of all lines. Bokeh would draw a tooltip for each line, and the tooltips would
// cover each other.
const FIGURES = new Set(["signals", "episode"]);
const MOST_TOLD = 24;
const FAR = 24; // pixels beyond the end of a line in which the line is still named
const precise = new Intl.NumberFormat("en", { maximumSignificantDigits: 6 });

// The index of the number that is nearest to ``wanted``, in ascending numbers.
function nearest(numbers, wanted) {
  let [low, high] = [0, numbers.length - 1];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    numbers[middle] < wanted ? (low = middle) : (high = middle);
  }
  return wanted - numbers[low] <= numbers[high] - wanted ? low : high;
}

function linesAt(view, x, top) {
  const { frame, model } = view;
  const told = [];
  for (const renderer of model.renderers) {
    const data = renderer.data_source?.data;
    if (!renderer.name || !renderer.visible || !data.x.length) continue;
    const place = nearest(data.x, x);
    const isBeyond = x < data.x[0] || x > data.x[data.x.length - 1];
    if (isBeyond && Math.abs(frame.x_scale.compute(data.x[place]) - frame.x_scale.compute(x)) > FAR) continue;
    const scale = frame.y_scales.get(renderer.y_range_name) ?? frame.y_scale;
    const { [place]: y } = data.y;
    told.push({ name: renderer.name, colour: renderer.glyph.line_color.value, x: data.x[place], y, low: data.low[place], high: data.high[place], apart: Math.abs(scale.compute(y) - top) });
  }
  return told.sort((a, b) => a.apart - b.apart).slice(0, MOST_TOLD);
}

function listenToPlots() {
  const tip = element("div", "plot-tip", undefined, { hidden: true });
  const mark = element("div", "plot-mark", undefined, { hidden: true });
  document.body.append(mark, tip);
  const hide = () => { tip.hidden = mark.hidden = true; };

  function show(view, event) {
    const { left, top } = view.el.getBoundingClientRect();
    const { bbox } = view.frame;
    const [x, y] = [event.clientX - left, event.clientY - top];
    const isInside = x >= bbox.left && x <= bbox.right && y >= bbox.top && y <= bbox.bottom;
    const lines = isInside ? linesAt(view, view.frame.x_scale.invert(x), y) : [];
    if (!lines.length) return hide();
    const facts = lines.map((line, place) => {
      const band = Number.isFinite(line.low) && line.high > line.low ? ` (${precise.format(line.low)} to ${precise.format(line.high)})` : "";
      const value = element("b", "", `${precise.format(line.y)}${band}`);
      const at = element("em", "", line.x === lines[0].x ? "" : `at ${precise.format(line.x)}`);
      return box("div", place ? "" : "nearest", swatch(line.colour), element("span", "", line.name), value, at);
    });
    tip.replaceChildren(element("div", "at", `${view.model.below[0].axis_label}: ${precise.format(lines[0].x)}`), ...facts);
    tip.hidden = mark.hidden = false;
    mark.style.cssText = `left: ${event.clientX}px; top: ${top + bbox.top}px; height: ${bbox.height}px`;
    const right = event.clientX + 16 + tip.offsetWidth;
    tip.style.left = `${Math.max(4, right > innerWidth ? event.clientX - 16 - tip.offsetWidth : event.clientX + 16)}px`;
    tip.style.top = `${Math.max(4, Math.min(event.clientY + 12, innerHeight - tip.offsetHeight - 8))}px`;
  }

  let waiting = 0;
  addEventListener("pointermove", (event) => {
    const under = event.composedPath();
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(() => {
      const views = [...(globalThis.Bokeh?.index?.query((view) => FIGURES.has(view.model.name)) ?? [])];
      const view = event.buttons ? null : views.find((one) => under.includes(one.el));
      view ? show(view, event) : hide();
    });
  }, { passive: true });
  document.documentElement.addEventListener("pointerleave", hide);
}
