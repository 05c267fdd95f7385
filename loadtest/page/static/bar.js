// A status bar below Locust's page: the state of the run, and links to its verdict and report.
(() => {
  const home = new URL("../", document.currentScript.src);
  const bar = document.body.appendChild(document.createElement("footer"));
  bar.id = "groupquake";
  bar.style.cssText =
    "position:fixed;bottom:0;left:0;right:0;z-index:1000;display:flex;gap:1.5em;padding:.7em 1.5em;" +
    "background:#1d2b36;color:#fff;font:15px/1.4 system-ui,sans-serif;border-top:4px solid";
  document.body.style.paddingBottom = "4em";
  const colours = { pass: "#2e9e5b", fail: "#d64545", unknown: "#e0a021", "not judged": "#e0a021" };

  let shown = "";
  const update = (...what) => {
    if (JSON.stringify(what) === shown) return; // keep links in place while they are clicked
    shown = JSON.stringify(what);
    const [colour, text, links] = what;
    bar.style.borderTopColor = colour;
    const words = document.createElement("span");
    words.textContent = text;
    words.style.cssText = "flex:1;overflow:hidden;text-overflow:ellipsis;white-space:nowrap";
    bar.replaceChildren(
      words,
      ...links.map(([label, path]) => {
        const link = document.createElement("a");
        link.textContent = label;
        link.href = new URL(path, home);
        link.target = "_blank";
        link.style.color = "#8fd0ff";
        return link;
      }),
    );
  };

  const show = (runs) => {
    const run = runs.at(-1);
    if (!run) {
      update("#8899a6", "groupquake: no run yet. A verdict needs an experiment (Custom parameters); " +
        "without one, Rebalances shows the events of clients.", [["Runs", ""]]);
    } else if (run.result === null) {
      update("#3d9be9", `${run.name}: ${run.state}. ${run.lines.at(-1) ?? ""}`, [["Progress", ""]]);
    } else if (!run.judged) {
      update(colours[run.result], `${run.name}: ${run.result}. ${run.why.join("; ")}`, [["Progress", ""]]);
    } else {
      const more = run.result === "pass" ? run.headline : run.why;
      update(colours[run.result], `${run.name}: verdict ${run.result}. ${more.join("; ")}`, [
        ["Report", `runs/${run.number}/report.html`],
        ["verdict.json", `runs/${run.number}/verdict.json`],
        ["Progress", ""],
      ]);
    }
  };

  const look = async () => {
    try {
      show((await (await fetch(new URL("state", home))).json()).runs);
    } catch {
      update("#8899a6", "groupquake: Locust has ended, or does not respond", []);
    }
    setTimeout(look, 1000);
  };
  look();

  // Locust folds our fields away; open them.
  const opened = new WeakSet();
  new MutationObserver(() => {
    for (const button of document.querySelectorAll("button[aria-expanded=false]")) {
      if (button.textContent === "Custom parameters" && !opened.has(button)) {
        opened.add(button);
        button.click();
      }
    }
  }).observe(document.body, { childList: true, subtree: true });
})();
