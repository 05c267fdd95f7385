// What Locust's page has of ours: a bar with the run's state and links, marks on the charts, a status
// that says what a run does, and no Edit while an experiment decides how many members there are.
(() => {
  const home = new URL("../", document.currentScript.src);
  const style = document.head.appendChild(document.createElement("style"));
  // Locust's theme colours the body, in light and dark; the bar takes part in that.
  style.textContent = `
    #groupquake { position: sticky; bottom: 0; z-index: 1000; display: flex; flex-wrap: wrap;
      gap: .2em 1.5em; padding: .6em 1.5em; max-height: 40vh; overflow: auto; box-sizing: border-box;
      background: inherit; color: inherit; font: 15px/1.4 system-ui, sans-serif;
      border-top: 4px solid #7a8894; overflow-wrap: anywhere; }
    #groupquake .words { flex: 1 1 22em; }
    #groupquake a { color: inherit; text-decoration: underline; }
    #groupquake a:focus-visible { outline: 2px solid; outline-offset: 2px; }
    #groupquake.going { border-color: #2f7fc4; } #groupquake.pass { border-color: #2e9e5b; }
    #groupquake.fail { border-color: #d64545; }
    #groupquake.unknown, #groupquake.not { border-color: #c98a00; }
    body.groupquake-fixed .groupquake-edit { display: none; }
    @media (max-width: 600px) { #groupquake { position: static; max-height: none; } }`;
  const bar = document.body.appendChild(document.createElement("section"));
  bar.id = "groupquake";
  bar.setAttribute("aria-label", "groupquake: state of the run");
  const put = (parent, name, text) =>
    Object.assign(parent.appendChild(document.createElement(name)), { textContent: text });
  const words = put(bar, "span", "");
  words.className = "words";
  const state = put(words, "strong", "");
  state.setAttribute("role", "status"); // not the words behind it, which change every second
  const more = put(words, "span", "");
  const links = put(bar, "nav", "");
  links.setAttribute("aria-label", "groupquake");
  links.style.cssText = "display:flex;flex-wrap:wrap;gap:.2em 1.5em";

  const set = (element, text) => {
    if (element.textContent !== text) element.textContent = text;
  };
  let linked = "";
  const update = (kind, what, text, targets) => {
    bar.className = kind;
    set(state, what);
    set(more, text && ` ${text}`);
    if (JSON.stringify(targets) === linked) return; // keep links in place while they are clicked
    linked = JSON.stringify(targets);
    links.replaceChildren();
    for (const [label, path] of targets) {
      const link = put(links, "a", label);
      link.href = new URL(path, home);
      link.target = "_blank";
    }
  };

  const SAYS = { comparing: "making the verdict" };
  const LIVE = ["Live page", ""];
  const show = (run) => {
    if (!run) {
      update("", "groupquake: no run yet.", "A verdict needs an experiment (Custom parameters); without " +
        "one, the live page shows the events of clients.", [LIVE]);
    } else if (run.result === null) {
      const does = SAYS[run.state] ?? run.state;
      update("going", `${run.name}: ${does}.`, run.lines.at(-1) ?? "", [LIVE]);
    } else if (!run.judged) {
      update(run.result, `${run.name}: ${run.result}.`, run.why.join("; "), [LIVE]);
    } else {
      const why = run.result === "pass" ? run.headline : run.why;
      update(run.result, `${run.name}: verdict ${run.result}.`, why.join("; "), [
        LIVE,
        ["Report", `runs/${run.number}/report.html`],
        ["verdict.json", `runs/${run.number}/verdict.json`],
      ]);
    }
  };

  // Locust's page knows a test that runs; a run heals, closes its members and is judged besides.
  const STATUS = { starting: "starting", healing: "healing", closing: "closing", comparing: "judging" };
  const showStatus = (run) => {
    const goesOn = run?.result === null;
    document.body.classList.toggle("groupquake-fixed", goesOn);
    for (const label of document.querySelectorAll("p")) {
      const text = label.textContent === "Status" && label.nextElementSibling?.firstChild;
      if (!text) continue;
      if (goesOn && run.state in STATUS) text.data = STATUS[run.state];
      else if (Object.values(STATUS).includes(text.data)) text.data = "running"; // as Locust had it
    }
  };

  // Locust's charts can mark nothing (their library comes without mark lines), so each kind is a series
  // of vertical lines on an axis of its own, with a name in the legend. React holds the charts.
  const MARKS = { rebalance: ["Rebalances", "#b0620c"], fault: ["Faults", "#d64545"] };
  const chartOf = (box) => {
    const key = Object.keys(box).find((name) => name.startsWith("__reactFiber$"));
    for (let fiber = box[key]; fiber; fiber = fiber.return) {
      for (const state of [fiber.memoizedState, fiber.alternate?.memoizedState]) {
        for (let hook = state; hook; hook = hook.next) {
          if (typeof hook.memoizedState?.setOption === "function") return hook.memoizedState;
        }
      }
    }
    return undefined;
  };
  const seriesOf = (marks, kind) => {
    const [name, color] = MARKS[kind];
    const seen = new Map(); // many clients see one rebalance
    for (const mark of marks) {
      if (mark.kind === kind) seen.set(`${mark.text} ${Math.floor(mark.at_ms / 1000)}`, mark);
    }
    const label = { formatter: "{b}", position: "left", fontSize: 11, color };
    const line = ({ at_ms: x, text }) => {
      const top = { name: text, value: [x, 1], symbolSize: 7, label: { ...label, show: kind === "fault" } };
      return [{ value: [x, 0], symbolSize: 0 }, top, [x, null]];
    };
    return {
      id: `groupquake-${kind}`, name, type: "line", yAxisIndex: 1, symbol: "circle", animation: false,
      tooltip: { show: false }, itemStyle: { color }, lineStyle: { color, width: 1.5 },
      emphasis: { label: { ...label, show: true } }, data: [...seen.values()].flatMap(line),
    };
  };
  const drawn = new WeakMap();
  const showMarks = (marks) => {
    const text = JSON.stringify(marks);
    for (const box of document.querySelectorAll("[_echarts_instance_]")) {
      const chart = chartOf(box);
      if (!chart || drawn.get(chart) === text) continue;
      drawn.set(chart, text);
      const axis = { id: "groupquake", show: false, min: 0, max: 1.1 };
      chart.setOption({ yAxis: [{}, axis], series: Object.keys(MARKS).map((kind) => seriesOf(marks, kind)) });
    }
  };

  const look = async () => {
    try {
      const { runs, marks } = await (await fetch(new URL("state", home))).json();
      show(runs.at(-1));
      showStatus(runs.at(-1));
      showMarks(marks);
    } catch {
      update("", "groupquake: Locust has ended, or does not respond", "", []);
    }
    setTimeout(look, 1000);
  };
  look();

  // Locust folds our fields away; open them. Its Edit is to be found again when it is hidden.
  const opened = new WeakSet();
  new MutationObserver(() => {
    for (const button of document.querySelectorAll("button")) {
      const text = button.textContent;
      if (text === "Edit") button.classList.add("groupquake-edit");
      if (text === "Custom parameters" && button.ariaExpanded === "false" && !opened.has(button)) {
        opened.add(button);
        button.click();
      }
    }
  }).observe(document.body, { childList: true, subtree: true });
})();
