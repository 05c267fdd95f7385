// A line below Locust's own page: how the run goes, and where its verdict and report are.
(() => {
  const home = new URL("../", document.currentScript.src);
  const bar = document.body.appendChild(document.createElement("footer"));
  bar.id = "groupquake";
  bar.style.cssText =
    "position:fixed;bottom:0;left:0;right:0;z-index:1000;display:flex;gap:1.5em;padding:.7em 1.5em;" +
    "background:#1d2b36;color:#fff;font:15px/1.4 system-ui,sans-serif;border-top:4px solid";
  document.body.style.paddingBottom = "4em";
  const colours = { pass: "#2e9e5b", fail: "#d64545", unknown: "#e0a021", "not judged": "#e0a021" };

  let said = "";
  const say = (...what) => {
    if (JSON.stringify(what) === said) return; // a link must not go from under the mouse
    said = JSON.stringify(what);
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
      say("#8899a6", "groupquake: no run yet. A verdict needs an experiment (Custom parameters); " +
        "without one, Rebalances shows what clients saw.", [["Runs", ""]]);
    } else if (run.result === null) {
      say("#3d9be9", `${run.name}: ${run.state}. ${run.lines.at(-1) ?? ""}`, [["Progress", ""]]);
    } else if (!run.judged) {
      say(colours[run.result], `${run.name}: ${run.result}. ${run.why.join("; ")}`, [["Progress", ""]]);
    } else {
      const more = run.result === "pass" ? run.headline : run.why;
      say(colours[run.result], `${run.name}: verdict ${run.result}. ${more.join("; ")}`, [
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
      say("#8899a6", "groupquake: this page has lost its server; Locust has ended, or does not answer", []);
    }
    setTimeout(look, 1000);
  };
  look();

  // Whoever comes here looks for our fields first, and Locust has them folded away.
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
