"""Trials: what is read from the command line, which run it becomes, and what its cells say."""

import json
import re
from collections import Counter
from html import unescape

import pytest

from groupquake.trial import page
from groupquake.trial.cells import as_json, cell_of, kept, worst
from groupquake.trial.experiments import EXPERIMENTS, OWN, Candidate, planned
from groupquake.trial.run_facts import load as load_of
from groupquake.trial.run_facts import software
from kafka_protocol.offsets_topic import partition_of
from reports.judgement.clients.client_rules.client_processes import Rule
from reports.judgement.clients.client_rules.findings import CLIENT_RULES
from scenarios import ScenarioError, load

ALL = tuple(EXPERIMENTS)


class TestCandidates:
    def test_names_and_programs(self):
        assert Candidate.of("sarama") == Candidate("sarama")
        mine = Candidate.of("mine=./consumer --to {bootstrap} 'a b'")
        assert mine == Candidate("mine", ("./consumer", "--to", "{bootstrap}", "a b"))
        unnamed = Candidate.of("java -Dx=1 -jar my.jar")
        assert unnamed == Candidate("java", ("java", "-Dx=1", "-jar", "my.jar"))

    def test_what_is_neither(self):
        for text in ("kafka-pythn", "", "mine=", "x 'y"):
            with pytest.raises(ScenarioError, match="--client"):
                Candidate.of(text)

    def test_programs_that_cannot_be_run_are_one_line(self):
        for text, what in (
            ("mine=./c {nope}", "there is no field {nope}"),
            ("mine=./c ''", "'' is not allowed"),
            ("a+b=./c", "'a+b' is not allowed"),
            ("'./-' {bootstrap}", "'-' is not allowed"),
        ):
            with pytest.raises(ScenarioError, match="--client") as error:
                Candidate.of(text)
            assert what in str(error.value)
            assert len(str(error.value).splitlines()) == 1

    def test_a_program_of_a_users_is_not_known_by_its_name(self):
        mine = Candidate.of("kafkajs=./mine")
        assert mine.has_static_members
        assert all(map(mine.groups_of, ALL))

    def test_no_two_groups_share_a_partition_of_the_offsets_topic(self):
        experiment = Candidate("java").experiment(ALL, "4.3.0")
        partitions = int(experiment.cluster.config["offsets.topic.num.partitions"])
        groups = experiment.group_names
        assert len({partition_of(group, partitions) for group in groups}) == len(groups)

    def test_the_faults_of_each_experiment(self):
        found = Counter(planned(Candidate("java").experiment(ALL, "4.3.0"), 7))
        assert found == {
            ("rolling-bounce-static", "member.restart"): 3,
            ("rolling-bounce-dynamic", "member.restart"): 3,
            ("kill", "member.kill"): 2,
            ("duplicate-id", "member.duplicate-instance"): 1,
            ("pause", "member.pause"): 1,
            ("batch-removal", "group.remove-members"): 1,
            ("lost-join-answer", "net.drop-answers"): 2,
            ("lost-join-answer", "member.restart"): 2,
            ("coordinator-failover", "broker.kill"): 1,
        }
        without_static = Counter(planned(Candidate("kafkajs").experiment(ALL, "4.3.0"), 7))
        assert without_static["lost-join-answer", "net.drop-answers"] == 1

    def test_every_client_has_a_run(self, tmp_path):
        for one in map(Candidate, OWN):
            experiment = one.experiment(ALL, "4.3.0")
            (file := tmp_path / f"{one.name}.yaml").write_text(experiment.dump(), "utf-8")
            assert load(file) == experiment
            assert {member.client for member in experiment.members()} == {one.name}
            kinds = {member.kind for member in experiment.members()}
            assert kinds == ({"static", "dynamic"} if one.has_static_members else {"dynamic"})
            assert one.about

    def test_some_experiments_alone(self):
        experiment = Candidate("java").experiment(["kill", "coordinator-failover"], "3.9.1")
        groups = [group.name for group in experiment.workload.groups]
        assert groups == ["kill-static", "kill-dynamic", "failover"]
        assert [fault.fault for fault in experiment.faults] == ["member.kill"] * 2 + ["broker.kill"]
        assert experiment.cluster.version == "3.9.1"

    def test_experiments_that_a_client_cannot_take_part_in(self):
        kafkajs = Candidate("kafkajs")
        assert [name for name in ALL if not kafkajs.groups_of(name)] == [
            "rolling-bounce-static", "duplicate-id", "batch-removal"
        ]  # fmt: skip
        with pytest.raises(ScenarioError, match="no static members"):
            kafkajs.experiment(["batch-removal"], "4.3.0")


PLANNED = planned(Candidate("franz-go").experiment(ALL, "4.3.0"), 7)
BROKER_KILLED_MS = 9_000.0
HIT = {
    "kill": ["kill-static", "kill-dynamic"],
    "lost-join-answer": ["lost-answer-static", "lost-answer-dynamic"],
}


def faults():
    """Return the planned faults, verified, as a verdict lists them."""
    for number, fired in enumerate(PLANNED):
        groups = HIT.get(fired.experiment, EXPERIMENTS[fired.experiment])
        group = None if fired.fault == "broker.kill" else groups[number % len(groups)]
        yield {
            "name": fired.fault,
            "target": "kill-0" if group == "kill-static" else f"target-{number}",
            "group": group,
            "meant_at_ms": BROKER_KILLED_MS if group is None else 1_000.0,
            "injected_at_ms": 1.0,
            "verified": True,
        }


def verdict(**more):
    groups = [group for names in EXPERIMENTS.values() for group in names]
    shown = {
        "rebalances_observed": {"impact": 2}, "responses_checked": 10, "unowned_partition_s": 1.5,
        "records": {"twice": 3},
    }  # fmt: skip
    return {
        "groups": {name: dict(shown) for name in groups},
        "faults": list(faults()),
        "findings": [],
        "unknown_because": [],
        "client_findings": [],
        **more,
    }


def finding(group, at_ms, rule="rejoins"):
    log = [
        {"file": "brokers/1/group.log", "line": 7, "at_ms": at_ms, "api": "HEARTBEAT",
         "generation": 4, "answer": "ILLEGAL_GENERATION"}
    ]  # fmt: skip
    return {"group": group, "client": "c", "rule": rule, "at_ms": at_ms, "what": "w", "log": log}


def by_name(found, name="franz-go"):
    return {one: cell_of(Candidate(name), one, found, PLANNED) for one in ALL}


def neither_passes(rows):
    """Return the experiments of which no verdict is a pass."""
    mixed = [
        name for name, cell in rows.items() if (cell.broker == "pass") != (cell.client == "pass")
    ]
    assert not mixed
    return [name for name, cell in rows.items() if cell.broker != "pass"]


class TestCells:
    def test_all_is_well(self):
        rows = by_name(verdict())
        assert {(cell.broker, cell.client) for cell in rows.values()} == {("pass", "pass")}
        assert (rows["kill"].rebalances, rows["pause"].rebalances) == (4, 2)
        assert worst([rows.values()]) == "pass"

    def test_the_costs_are_those_of_the_groups_or_not_known(self):
        found = verdict()
        found["groups"]["pause"]["unowned_partition_s"] = None
        found["groups"]["kill-static"]["records"] = None
        rows = by_name(found)
        costs = {
            name: (cell.unowned_partition_s, cell.records_twice) for name, cell in rows.items()
        }
        assert costs["batch-removal"] == (1.5, 3)
        assert costs["lost-join-answer"] == (3.0, 6)
        assert costs["pause"] == (None, 3)
        assert costs["kill"] == (3.0, None)

    def test_every_rule_is_kept_broken_or_open(self):
        unsure = finding("pause", 5_000.0, "syncs") | {"unsure": "the machine was busy"}
        found = verdict(client_findings=[finding("pause", 5_000.0), unsure])
        rules = kept(by_name(found).values())
        assert (rules.pop("rejoins"), rules.pop("syncs")) == ("broken", "not certain")
        assert set(rules.values()) == {"kept"}
        assert set(kept(by_name(None).values()).values()) == {"not known"}

    def test_what_only_the_application_tells_is_not_known_without_it(self, monkeypatch):
        rule = Rule("loses-nothing", "d", "s", mend="m", about="application")
        monkeypatch.setitem(CLIENT_RULES, rule.name, rule)
        found = verdict()
        assert kept(by_name(found).values())[rule.name] == "kept"
        for group in found["groups"].values():
            group["records"] = None
        rules = kept(by_name(found).values())
        assert (rules[rule.name], rules["rejoins"]) == ("not known", "kept")

    def test_a_client_finding_is_that_of_its_group_until_a_broker_is_killed(self):
        early, late = finding("pause", 5_000.0), finding("pause", 9_500.0, "stops-when-fenced")
        rows = by_name(verdict(client_findings=[early, late]))
        assert {name: cell.rules for name, cell in rows.items() if cell.rules} == {
            "pause": ("rejoins",), "coordinator-failover": ("stops-when-fenced",)
        }  # fmt: skip
        assert rows["pause"].broker == "pass"
        assert rows["coordinator-failover"].findings[0]["known"] == "twmb/franz-go#931"
        assert worst([rows.values()]) == "fail"

    def test_a_broker_that_breaks_the_protocol(self):
        broken = {"root": True, "proven": True, "group": "duplicate-id", "kind": "response",
                  "expected": "82", "observed": "0"}  # fmt: skip
        rows = by_name(verdict(findings=[broken]))
        assert {name for name, cell in rows.items() if cell.broker == "fail"} == {"duplicate-id"}
        unsure = by_name(verdict(findings=[broken | {"proven": False}]))
        assert unsure["duplicate-id"].broker == "unknown"

    def test_doubts_are_about_the_groups_that_they_name_or_all(self):
        rows = by_name(verdict(unknown_because=["group pause: no request of it"]))
        assert neither_passes(rows) == ["pause"]
        assert {rows["pause"].broker, rows["pause"].client} == {"unknown"}
        rows = by_name(verdict(unknown_because=["fault member.kill on kill-0 was not verified"]))
        assert neither_passes(rows) == ["kill"]
        rows = by_name(verdict(unknown_because=["the journal ends before the run did"]))
        assert neither_passes(rows) == list(ALL)

    def test_a_finding_stays_one_beside_a_doubt(self):
        doubt = "group pause: lines of 2 offsets partitions"
        found = verdict(unknown_because=[doubt], client_findings=[finding("pause", 5_000.0)])
        cell = by_name(found)["pause"]
        assert (cell.broker, cell.client, cell.doubts) == ("unknown", "fail", (doubt,))

    @pytest.mark.parametrize("verified", [False, None])
    def test_without_its_fault_verified_an_experiment_shows_nothing(self, verified):
        found = verdict()
        of_kill = [one for one in found["faults"] if one["name"] == "member.kill"]
        of_kill[0]["verified"] = bool(verified)
        if verified is None:
            found["faults"].remove(of_kill[0])
        rows = by_name(found)
        assert neither_passes(rows) == ["kill"]
        assert rows["kill"].doubts == ("member.kill: 2 planned, 1 verified",)

    def test_without_requests_of_a_group_an_experiment_shows_nothing(self):
        found = verdict()
        found["groups"]["pause"]["responses_checked"] = 0
        del found["groups"]["failover"]
        assert neither_passes(by_name(found)) == ["coordinator-failover", "pause"]

    def test_an_empty_verdict_passes_nobody(self):
        rows = by_name(verdict(groups={}, faults=[]))
        assert neither_passes(rows) == list(ALL)
        assert worst([rows.values()]) == "unknown"

    def test_a_finding_that_a_busy_machine_may_explain_proves_nothing(self):
        unsure = finding("pause", 5_000.0) | {"unsure": "the machine was busy"}
        cell = by_name(verdict(client_findings=[unsure]))["pause"]
        assert (cell.broker, cell.client, cell.rules) == ("pass", "unknown", ("rejoins",))
        both = verdict(client_findings=[unsure, finding("pause", 5_500.0, "syncs")])
        assert by_name(both)["pause"].client == "fail"

    def test_clients_without_static_members_and_without_a_run(self):
        assert by_name(verdict(), "kafkajs")["duplicate-id"].broker == "not possible"
        assert {cell.broker for cell in by_name(None).values()} == {"not run"}


def trial_of(verdicts):
    """Return a trial as `trial.json` has it: of clients by name, all but java on trial."""
    clients = {
        name: {
            "about": f"{name} & co", "software": None, "load": (1.5, 20.0), "why_not": None,
            "cells": [*map(as_json, rows := [*by_name(found, name).values()])], "rules": kept(rows),
        }
        for name, found in verdicts.items()
    }  # fmt: skip
    return {
        "kafka": "4.3.0", "seed": 1, "at": "today", "groupquake": "0.1.0 abc", "machine": "2 cores",
        "experiments": list(ALL), "verdict": "fail", "clients": clients,
        "comparison": "java" if "java" in clients else None,
        "tried": [name for name in clients if name != "java"],
        "rules": {name: {"demands": one.demands, "source": one.source, "mend": one.mend}
                  for name, one in CLIENT_RULES.items()},
    }  # fmt: skip


def text_of(part):
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", part)))


class TestPage:
    def test_every_cell_and_finding(self):
        found = verdict(client_findings=[finding("pause", 5_000.0)], unknown_because=["why so"])
        trial = trial_of({"franz-go": found, "sarama": None})
        trial["clients"]["sarama"]["why_not"] = "there is no 'go'"
        for text in (page.markdown(trial), page.html(trial), "\n".join(page.lines(trial))):
            for said in (
                "there is no 'go'",
                "rejoins",
                "why so",
                CLIENT_RULES["rejoins"].mend,
                *ALL,
            ):
                assert said.replace("_", "") in unescape(text).replace("\\", "").replace("_", "")
        assert "franz-go &amp; co" in page.html(trial)
        line = "| franz-go | brokers unknown, client unknown; 2 rebalances |"
        assert line in page.markdown(trial)

    def test_a_broken_rule_has_the_requests_that_show_it(self):
        broken = [finding("pause", 5_000.0), finding("pause", 6_000.0)]
        html = page.html(trial_of({"franz-go": verdict(client_findings=broken), "java": verdict()}))
        (article,) = re.findall(r"<article.*?</article>", html, re.DOTALL)
        assert ("00:00:05.000 UTC HEARTBEAT 4 ILLEGAL_GENERATION brokers/1/group.log:7") in text_of(
            article
        )
        assert "pause : w (and 1 more)." in text_of(article)
        assert CLIENT_RULES["rejoins"].source in text_of(article)

    def test_what_shows_in_most_experiments_comes_first(self):
        kinds = {"rejoins": ["pause"], "syncs": ["pause", "failover"]}
        broken = [finding(group, 1.0, rule) for rule, groups in kinds.items() for group in groups]
        trial = trial_of({"franz-go": verdict(client_findings=broken)})
        assert page.broken(trial["clients"]["franz-go"]) == ["syncs", "rejoins"]

    def test_costs_stand_beside_those_of_kafkas_own_client(self):
        theirs = verdict()
        theirs["groups"]["pause"] |= {
            "rebalances_observed": {"impact": 1}, "unowned_partition_s": 12.5, "records": None,
        }  # fmt: skip
        html = page.html(trial_of({"franz-go": verdict(), "java": theirs}))
        assert "pause 2 1 1.5 12.5 3 not known" in text_of(html)
        assert "kill 4 4 3.0 3.0 6 6" in text_of(html)
        assert html.count("<section>") == 1, "the comparison is not on trial"

    def test_it_is_one_file_that_loads_nothing(self):
        html = page.html(trial_of({"franz-go": verdict()}))
        assert not re.search(r"<(script|link|img|iframe)\b|url\(|@import", html)


class TestRunFacts:
    def test_what_members_call_themselves(self, tmp_path):
        log = tmp_path / "brokers" / "1" / "group.log"
        log.parent.mkdir(parents=True)
        line = '{"requestApiKeyName":"%s"} {"softwareName":"%s","softwareVersion":"1.2"}\n'
        log.write_text(line % ("LEAVE_GROUP", "admin") + line % ("JOIN_GROUP", "unknown"))
        assert software(tmp_path) is None
        with log.open("a") as file:
            file.write(line % ("JOIN_GROUP", "franz"))
        assert software(tmp_path) == "franz 1.2"

    def test_the_load_of_the_machine(self, tmp_path):
        sample = {"event": "sample", "interval_ms": 1000, "cpu_waiting": 0.1, "cpu_stolen": 0.0}
        lines = [{**sample, "at_ms": 1, "load": one} for one in (3.5, 1.25, 2.0)]
        (tmp_path / "machine.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
        assert load_of(tmp_path) == (1.25, 3.5)


class TestCommand:
    def test_bad_usage_says_so(self, groupquake):
        for arguments, line in (
            (["--client", "sarma"], "did you mean 'sarama'?"),
            (["--client", "java", "--experiments", "klil"], "did you mean 'kill'?"),
            (["--client", "java", "--kafka", "9"], "--kafka 9"),
            (["--client", "mine=./c {nope}"], "there is no field {nope}"),
            (["--client", "a=x y", "--client", "a=z y"], "two programs are called a"),
            ([], "--client"),
        ):
            done = groupquake("trial", *arguments)
            assert done.code == 64
            assert line in done.err

    def test_a_client_that_cannot_be_built_is_not_run(self, groupquake, tmp_path):
        nothing = {"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
        done = groupquake(
            "trial", "--client", "sarama", "--seed", "5", "--no-comparison", env=nothing
        )
        assert (done.code, "there is no 'go' on the path" in done.err) == (2, True)
        trial = json.loads((tmp_path / "trials" / "latest" / "trial.json").read_text())
        assert [trial[key] for key in ("verdict", "kafka", "seed")] == ["not run", "4.3.0", 5]
        assert "there is no 'go'" in trial["clients"]["sarama"]["why_not"]

    def test_clients_are_listed(self, groupquake):
        done = groupquake("clients", "list")
        assert done.code == 0
        assert [line.split()[0] for line in done.out.splitlines()] == list(OWN[1:])
        assert groupquake("clients", "build", "java").code == 0
        assert groupquake("clients", "build").code == 64
        missing = groupquake("clients", "build", "javva")
        assert (missing.code, "did you mean 'java'?" in missing.err) == (3, True)
