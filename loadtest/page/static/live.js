// The live page: the state of the latest run, pushed by Locust's process (loadtest/page/events.py).
// The state is kept as it was sent, and changed by patches; what shows is written again where it changed.
(() => {
  const home = new URL("../", document.currentScript.src);
  const $ = (id) => document.getElementById(id);
  const CAUSES = { fault: "by faults", load: "by the load", broker: "by the broker", client: "by clients", unknown: "not known yet" };
  const LATEST = 100; // how many rebalances the table shows

  // --- what shows ---------------------------------------------------------------------------------------------------
  const put = (element, text) => {
    if (element.textContent !== text) element.textContent = text;
  };
  const make = (name, kind = "", text = "") => {
    const made = document.createElement(name);
    if (kind) made.className = kind;
    if (text) made.textContent = text;
    return made;
  };
  // Makes the children of an element those of a list: `create` makes one, `update` writes into it.
  const fill = (parent, list, create, update) => {
    while (parent.children.length > list.length) parent.lastElementChild.remove();
    list.forEach((one, at) => update(parent.children[at] ?? parent.appendChild(create()), one));
  };
  const cells = (row, texts) =>
    fill(row, texts, () => make("td"), (cell, [text, kind]) => {
      put(cell, text);
      cell.className = kind ?? "";
    });
  const count = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
  const seconds = (ms, digits = 1) => `${(ms / 1000).toFixed(digits)} s`;
  const links = (parent, run) => {
    const wanted = run?.judged ? ["report.html", "verdict.json", "junit.xml"] : [];
    fill(parent, wanted, () => make("a"), (link, name) => {
      put(link, name === "report.html" ? "The report" : name);
      const url = new URL(`runs/${run.number}/${name}`, home).href;
      if (link.href !== url) link.href = url;
    });
  };

  // `orders-0, orders-1, orders-2` is `orders-0…2`.
  const ranges = (partitions) => {
    const of = {};
    for (const one of partitions) {
      const at = one.lastIndexOf("-");
      (of[one.slice(0, at)] ??= []).push(Number(one.slice(at + 1)));
    }
    return Object.entries(of)
      .map(([topic, numbers]) => {
        const parts = [];
        for (const n of numbers.sort((a, b) => a - b)) {
          const last = parts.at(-1);
          if (last && n === last[1] + 1) last[1] = n;
          else parts.push([n, n]);
        }
        return `${topic}-${parts.map(([a, b]) => (a === b ? a : `${a}…${b}`)).join(",")}`;
      })
      .join(" ");
  };

  const header = (run, plain) => {
    put($("name"), run ? run.name : plain ? "A load without an experiment" : "No run yet");
    document.title = run ? `${run.result ?? run.state} · ${run.name} · groupquake` : "groupquake";
    $("none").hidden = Boolean(run);
    $("plain").hidden = $("seen-part").hidden = !plain;
    for (const one of document.querySelectorAll(".of-runs")) one.hidden = plain;
    const badge = $("badge");
    badge.hidden = !run;
    fill($("why"), !run ? [] : run.result === "pass" ? run.headline : run.why, () => make("li"), put);
    links($("links"), run);
    if (!run) return;
    put(badge, run.result ? (run.judged ? `verdict: ${run.result}` : run.result) : run.state);
    badge.className = `badge ${run.result ?? ""}`;
  };

  const phase = (run, live, now) => {
    const current = live.phases?.at(-1);
    const goes = run && !run.result && current && current.name !== "end";
    $("phase").hidden = !goes;
    if (!goes) return;
    put($("phase-name"), current.name);
    const lasts = current.ends_ms ? current.ends_ms - current.began_ms : null;
    const left = current.ends_ms ? Math.max(0, current.ends_ms - now) : null;
    $("phase-bar").hidden = left === null;
    if (left !== null) $("phase-bar").value = Math.min(1, 1 - left / lasts);
    put($("phase-left"), left === null ? `for ${seconds(now - current.began_ms, 0)}`
      : left > 0 ? `${seconds(left, 0)} left` : "its time is over; what is open is finished");
  };

  const ROWS = [
    ["Rebalances", (g) => [`${Object.values(g.rebalances).reduce((a, b) => a + b, 0)}`]],
    ["by cause", (g) => [Object.entries(g.rebalances).filter(([, n]) => n).map(([by, n]) => `${n} ${CAUSES[by]}`).join(", ") || "–"]],
    ["foreseen by the phase's end", (g) => [g.due === null ? "–" : g.due.replace("..", " to ")]],
    ["Members stopped", (g) => [seconds(g.stopped_ms)]],
    ["Partitions without an owner", (g) => [`${g.unowned}`, g.unowned ? "doubt" : ""]],
    ["so far, in partition-seconds", (g) => [(g.unowned_ms / 1000).toFixed(1)]],
    ["Lag, in records", (g) => [g.lag === null ? "–" : g.lag.toLocaleString("en")]],
    ["Commits that failed", (g) => [`${g.commit_errors}`, g.commit_errors ? "bad" : ""]],
  ];
  const card = () => {
    const made = make("article", "card");
    made.append(make("h3"), make("p", "state"), make("dl"));
    for (const [label] of ROWS) made.lastChild.appendChild(make("div")).append(make("dt", "", label), make("dd"));
    return made;
  };
  const groups = (live, run) => {
    const going = new Set();
    for (const one of live.rebalances ?? []) one.generation === null ? going.add(one.group) : going.delete(one.group);
    fill($("groups"), Object.entries(live.groups ?? {}), card, (made, [name, group]) => {
      const [title, state, list] = made.children;
      made.classList.toggle("rebalancing", going.has(name));
      put(title, name);
      put(state, [
        live.plain ? "" : going.has(name) ? "rebalancing" : group.generation === null ? "not formed yet" : `generation ${group.generation}`,
        `${group.members ?? 0} of ${count(group.planned, "member")}`,
        live.plain ? "" : group.coordinator === null ? "no coordinator yet" : `broker ${group.coordinator} coordinates`,
      ].filter(Boolean).join(" · "));
      list.hidden = Boolean(live.plain);
      if (live.plain) return;
      ROWS.forEach(([, value], at) => {
        const [text, kind] = value({ ...group, rebalances: run?.causes[name] ?? group.rebalances });
        const shown = list.children[at].lastChild;
        put(shown, text);
        shown.className = kind ?? "";
      });
    });
  };

  const owners = (live) => {
    const forming = live.phases?.at(-1)?.name === "formation";
    const of = {};
    for (const [name, member] of Object.entries(live.members ?? {})) (of[member.group] ??= []).push([name, member]);
    const block = () => {
      const made = make("div");
      const list = make("ul", "strip");
      list.tabIndex = 0;
      made.append(make("h3"), list);
      return made;
    };
    const item = () => {
      const made = make("li");
      made.append(make("span", "who"), make("span", "what"));
      return made;
    };
    fill($("owners"), Object.entries(live.groups ?? {}), block, (made, [group, about]) => {
      const [title, list] = made.children;
      const here = new Set((of[group] ?? []).map(([name]) => name));
      const more = Object.keys(about.owners).filter((name) => !here.has(name)).map((name) => [name, { in: true }]);
      put(title, group);
      list.setAttribute("aria-label", `Members of ${group} and their partitions`);
      fill(list, [...(of[group] ?? []), ...more], item, (row, [name, member]) => {
        const owned = about.owners[name] ?? [];
        const [who, what] = row.children;
        row.className = member.in || forming ? "" : "out";
        put(who, name);
        put(what, owned.length ? ranges(owned) : member.fenced ? "fenced: another has its instance id" : member.in ? "owns nothing" : forming ? "not in yet" : "not in the group");
      });
    });
  };

  const tables = (live) => {
    const zero = live.phases?.[0]?.began_ms ?? 0;
    const at = (ms) => (ms === null ? "" : `+${seconds(ms - zero)}`);
    fill($("faults"), (live.faults ?? []).toReversed(), () => make("tr"), (row, one) => cells(row, [
      [one.by_hand ? `${one.id}, by hand` : one.id], [one.fault], [one.target], [at(one.injected_ms)],
      one.healed_ms !== null && !one.healed ? ["NOT HEALED", "bad"] : [at(one.healed_ms)],
      one.verified === null ? [""] : one.verified ? [`yes: ${one.witness}`] : [`NO: ${one.witness}`, "bad"],
    ]));
    fill($("rebalances"), (live.rebalances ?? []).slice(-LATEST).toReversed(), () => make("tr"), (row, one) => cells(row, [
      [at(one.at_ms)], [one.group], [`${one.old_generation} → ${one.generation ?? "…"}`], [`${one.members ?? ""}`],
      [one.took_ms === null ? "" : seconds(one.took_ms, 2)], [CAUSES[one.by]], [one.reason],
    ]));
  };

  const seen = (live) =>
    fill($("seen"), live.seen ?? [], () => make("tr"), (row, one) => cells(row, [
      [new Date(one.at_ms).toISOString().slice(11, 23)], [one.group], [one.reason],
    ]));

  const session = (runs, run) => {
    $("progress").hidden = !run;
    if (run) {
      put($("folder"), run.folder);
      const log = $("lines");
      const below = log.scrollHeight - log.scrollTop - log.clientHeight < 30;
      put(log, run.lines.join("\n"));
      if (below) log.scrollTop = log.scrollHeight;
    }
    const before = (run ? runs.slice(0, -1) : [...runs]).reverse();
    $("earlier").hidden = before.length === 0;
    const entry = () => {
      const made = make("li");
      made.append(make("span"), make("span"));
      return made;
    };
    fill($("runs"), before, entry, (made, one) => {
      put(made.children[0], `${one.name}: ${one.result}`);
      links(made.children[1], one);
    });
  };

  // --- what is read out ---------------------------------------------------------------------------------------------
  let heard = null;
  const say = (run, live) => {
    const now = {
      run: run ? `${run.name}: ${run.judged ? `verdict ${run.result}` : run.result ?? run.state}` : "",
      phase: run && !run.result ? (live.phases?.at(-1)?.name ?? "") : "",
      faults: (live.faults ?? []).filter((one) => one.injected_ms !== null).map((one) => `${one.fault} on ${one.target}`),
    };
    if (heard) {
      const news = [];
      if (now.run !== heard.run) news.push(now.run);
      if (now.phase && now.phase !== heard.phase) news.push(`phase ${now.phase}`);
      news.push(...now.faults.slice(heard.faults.length).map((one) => `fault: ${one}`));
      if (news.length) put($("said"), news.join("; "));
    }
    heard = now;
  };

  // --- the state ----------------------------------------------------------------------------------------------------
  const apply = (value, patch) => {
    if (Array.isArray(patch)) return patch[0];
    for (const [key, change] of Object.entries(patch)) {
      if (change === null) delete value[key];
      else if (key === "length" && Array.isArray(value)) value.length = change[0];
      else value[key] = apply(value[key], change);
    }
    return value;
  };
  let state = { runs: [], live: {} };
  let clock = { ms: 0, at: 0 }; // the run's time, and when the page had it
  let due = false;
  const draw = () => {
    due = false;
    const { runs, live } = state;
    const run = live.plain ? undefined : runs.at(-1);
    header(run, Boolean(live.plain));
    $("run").hidden = !live.groups;
    if (live.groups) {
      groups(live, run);
      owners(live);
    }
    if (live.figure) {
      tables(live);
      Figure.draw($("figure"), live.figure);
    }
    seen(live);
    phase(run, live, clock.ms + performance.now() - clock.at);
    session(runs, run);
    say(run, live);
    dispatchEvent(new CustomEvent("groupquake", { detail: state }));
  };
  const take = (event) => {
    const { runs, live } = JSON.parse(event.data);
    if (runs && live) state = { runs, live };
    else if (runs) state.runs = apply(state.runs, runs);
    else state.live = apply(state.live, live);
    if (live) clock = { ms: state.live.at_ms ?? 0, at: performance.now() };
    put($("lost"), "");
    if (!due) {
      due = true;
      requestAnimationFrame(draw);
    }
  };

  const connect = () => {
    const events = new EventSource(new URL("events", home));
    events.onmessage = take;
    events.onerror = () => {
      put($("lost"), "Locust does not respond, or has ended; this page shows its last state.");
      if (events.readyState === EventSource.CLOSED) setTimeout(connect, 1000);
    };
  };
  connect();
  setInterval(() => phase(state.runs.at(-1), state.live, clock.ms + performance.now() - clock.at), 500);
})();
