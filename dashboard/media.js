// The GIFs and videos of runs, with a slider over environment steps. It shows the newest video of each run up to the
// chosen step.
export function render({ model }) {
  const slider = element("input", "", undefined, { type: "range", min: 0, "aria-label": "Environment steps" });
  const [before, after] = [["←", "Earlier"], ["→", "Later"]].map(([text, title]) => element("button", "", text, { title, "aria-label": title }));
  const told = element("output", "told");
  const bar = box("div", "bar", before, slider, after, told);
  const figures = element("div", "figures");
  const nothing = element("div", "nothing");
  const root = box("div", "media", bar, figures, nothing);
  const shown = new Map(); // the figure of each run, so that a video that is already shown is not loaded again
  let given = { runs: [], message: "" };
  let steps = [];
  let followsNewest = true;

  function figureOf(run, item) {
    const key = `${run.id} ${item?.url}`;
    if (shown.get(run.id)?.key === key) return shown.get(run.id).figure;
    const properties = { src: item?.url, title: item?.title };
    const picture = !item ? element("div", "none", "no video yet")
      : item.url.endsWith(".gif") ? element("img", "", undefined, { ...properties, alt: item.title })
        : element("video", "", undefined, { ...properties, controls: true, loop: true, muted: true, autoplay: true, preload: "metadata" });
    const facts = item ? [item.step === null ? "" : `step ${Math.round(item.step).toLocaleString("en")}`, item.when] : [];
    const name = box("b", "", swatch(run.colour), run.label);
    const figure = box("figure", "", picture, box("figcaption", "", name, ...facts.filter(Boolean).map((text) => element("span", "", text))));
    shown.set(run.id, { key, figure });
    return figure;
  }

  function draw() {
    const now = steps[slider.value];
    const isKnown = now !== undefined && Number.isFinite(now);
    told.textContent = isKnown ? `step ${Math.round(now).toLocaleString("en")}` : "";
    [before.disabled, after.disabled] = [Number(slider.value) <= 0, Number(slider.value) >= steps.length - 1];
    figures.replaceChildren(...given.runs.map((run) => figureOf(run, run.items.findLast((item) => !isKnown || (item.step ?? -Infinity) <= now))));
  }

  function take() {
    given = JSON.parse(model.sent || '{"runs": [], "message": "Reading …"}');
    const old = steps[slider.value];
    steps = [...new Set(given.runs.flatMap((run) => run.items.map((item) => item.step ?? Infinity)))].sort((a, b) => a - b);
    slider.max = Math.max(0, steps.length - 1);
    slider.value = followsNewest || !steps.includes(old) ? slider.max : steps.indexOf(old);
    bar.hidden = steps.length < 2;
    nothing.textContent = given.message;
    nothing.hidden = !given.message;
    draw();
  }

  const move = () => { followsNewest = slider.value === slider.max; draw(); };
  slider.oninput = move;
  before.onclick = () => { slider.stepDown(); move(); };
  after.onclick = () => { slider.stepUp(); move(); };
  model.on("sent", take);
  take();
  return root;
}
