// Saves the plot as a picture.
export function render({ model }) {
  const save = async (kind) => {
    const [view] = Bokeh.index.query((view) => view.model.name === "signals");
    if (view) download(await view.export(kind).to_blob(), `signals.${kind}`);
  };
  const buttons = ["png", "svg"].map((kind) => element("button", "", kind.toUpperCase(), { onclick: () => save(kind) }));
  const show = () => buttons.forEach((button) => { button.disabled = !model.ready; });
  model.on("ready", show);
  show();
  return box("div", "exports", ...buttons);
}
