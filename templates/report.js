"use strict";
// Draws the charts and lets the reader choose a batch and a precision. Every figure was computed before; this only selects.
(() => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const element = (id) => document.getElementById(id);
  const specs = read("chart-specs");
  const { batches, readouts } = read("chart-control");
  const controls = element("controls");

  for (const event of ["beforeprint", "afterprint"]) {
    window.addEventListener(event, () => {
      for (const details of document.querySelectorAll("details")) {
        if (event === "beforeprint") {
          details.dataset.open = details.open;
          details.open = true;
        } else {
          details.open = details.dataset.open === "true";
        }
      }
    });
  }

  if (!controls) return;
  const options = {
    actions: false,
    renderer: "svg",
    tooltip: { disableDefaultStyle: true },
  };
  const drawn = Object.entries(specs).map(([name, spec]) =>
    vegaEmbed(`#${name}`, spec, options).then(
      (result) => result.view,
      (error) => {
        element(name).textContent = `The chart could not be drawn: ${error.message}`;
        throw error;
      },
    ),
  );

  const show = async () => {
    const batch = batches[Number(element("batch").value)];
    const precision = controls.elements.precision.value;
    const text = batch.toLocaleString("en-US");
    element("batch-shown").textContent = text;
    element("batch-read").textContent = text;
    element("batch").setAttribute("aria-valuetext", text);
    element("precision-read").textContent = precision;
    element("readout").textContent = readouts[precision][batch];
    for (const view of await Promise.all(drawn)) {
      await view.signal("batch", batch).signal("precision", precision).runAsync();
    }
    document.documentElement.dataset.shown = `${batch} ${precision}`;
  };

  controls.hidden = false;
  controls.addEventListener("submit", (event) => event.preventDefault());
  controls.addEventListener("input", show);
  show();
})();
