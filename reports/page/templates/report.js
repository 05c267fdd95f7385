const charts = {};
for (const [id, figure] of Object.entries(FIGURES)) {
  charts[id] = document.getElementById(id);
  figure.layout.xaxis.nticks = Math.ceil(charts[id].clientWidth / 80);  // more would be turned on their side
  Plotly.newPlot(charts[id], figure.data, figure.layout, {displayModeBar: false, responsive: true});
}

// Figures over the time of the run show the same part of it.
const timed = Object.entries(charts).filter(([id]) => id !== "stops").map(([, chart]) => chart);
for (const moved of timed) {
  moved.on("plotly_relayout", () => {
    const range = moved.layout.xaxis.range.map(Number);
    for (const other of timed) {
      const shown = other.layout.xaxis.range.map(Number);
      if (shown.some((end, i) => Math.abs(end - range[i]) > 1e-6)) {
        Plotly.relayout(other, {"xaxis.range": [...range]});
      }
    }
  });
}

function show(id) {
  const place = document.getElementById(id);
  if (!place) return;
  const fold = place.closest("details");
  if (fold) fold.open = true;
  place.scrollIntoView({block: "center"});
  history.replaceState(null, "", "#" + id);
}
charts.timeline.on("plotly_click", event => {
  const id = event.points[0].customdata;
  if (typeof id === "string") show(id);
});
if (location.hash) show(location.hash.slice(1));
addEventListener("hashchange", () => show(location.hash.slice(1)));
addEventListener("beforeprint", () => {
  for (const fold of document.querySelectorAll("details")) fold.open = true;
});
