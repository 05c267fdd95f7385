// Every run of this session, the latest first, as it goes on.
(() => {
  const home = new URL("../", document.currentScript.src);
  const template = document.querySelector("#run");
  const lost = document.querySelector("#lost");
  const showError = (text) => {
    if (lost.textContent !== text) lost.textContent = text; // or it would be read out every second
  };

  const section = (run) => {
    const made = template.content.cloneNode(true);
    const put = (selector, text) => (made.querySelector(selector).textContent = text);
    put(".name", `${run.number}. ${run.name}`);
    put(".badge", run.result ?? run.state);
    made.querySelector(".badge").classList.add(...(run.result ?? "").split(" ").filter(Boolean));
    put(".folder", run.folder);
    put("pre", run.lines.join("\n"));
    for (const line of [...run.headline, ...run.why]) {
      made.querySelector(".reasons").appendChild(document.createElement("li")).textContent = line;
    }
    if (run.judged) {
      for (const name of ["report.html", "verdict.json", "junit.xml"]) {
        const link = made.querySelector(".links").appendChild(document.createElement("a"));
        link.textContent = name;
        link.href = new URL(`runs/${run.number}/${name}`, home);
      }
    }
    return made;
  };

  const main = document.querySelector("#runs");
  const none = main.firstElementChild;
  let seen = "[]";
  const show = (runs) => {
    if (JSON.stringify(runs) === seen) return;
    seen = JSON.stringify(runs);
    main.replaceChildren(...(runs.length ? runs.map(section).reverse() : [none]));
    const log = main.querySelector("pre");
    if (log) log.scrollTop = log.scrollHeight;
  };

  const look = async () => {
    try {
      show((await (await fetch(new URL("state", home))).json()).runs);
      showError("");
    } catch {
      showError("Locust does not respond, or has ended; this page shows its last state.");
    }
    setTimeout(look, 1000);
  };
  look();
})();
