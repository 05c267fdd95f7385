for (const [id, figure] of Object.entries(FIGURES)) Figure.draw(document.getElementById(id), figure);

function show(id) {
  const place = document.getElementById(id);
  if (!place) return;
  const fold = place.closest("details");
  if (fold) fold.open = true;
  place.scrollIntoView({block: "center"});
}
if (location.hash) show(location.hash.slice(1));
addEventListener("hashchange", () => show(location.hash.slice(1)));
addEventListener("beforeprint", () => {
  for (const fold of document.querySelectorAll("details")) fold.open = true;
});
