const chart = document.getElementById("timeline");
Plotly.newPlot(chart, FIGURE.data, FIGURE.layout, {displayModeBar: false, responsive: true});

function show(id) {
  const place = document.getElementById(id);
  if (!place) return;
  const fold = place.closest("details");
  if (fold) fold.open = true;
  place.scrollIntoView({block: "center"});
  history.replaceState(null, "", "#" + id);
}
chart.on("plotly_click", event => {
  const id = event.points[0].customdata;
  if (typeof id === "string") show(id);
});
if (location.hash) show(location.hash.slice(1));
addEventListener("hashchange", () => show(location.hash.slice(1)));
addEventListener("beforeprint", () => {
  for (const fold of document.querySelectorAll("details")) fold.open = true;
});
