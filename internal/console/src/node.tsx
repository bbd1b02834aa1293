import { Fragment, h } from "preact";
import { doing, nameOf, ofNode, ofResult } from "./judge";
import { Age, bytes, Command, Facts, percent, Section, State, Table } from "./parts";
import { place } from "./ring";
import { View } from "./types";

export function NodePage({ is, name }: { is: View; name: string }) {
  const n = is.nodes.find((x) => x.name === name);
  if (!n) return <p class="none">There is no node {name} in this cluster.</p>;
  const a = n.agent;
  const r = n.record?.status;
  const s = ofNode(n);
  const all = doing(n);
  const on = (...words: string[]) => ["kubectl", "helenus", words[0], name, ...words.slice(1), "--namespace", is.namespace];
  const recommended = (operation: string) =>
    is.status.recommended?.some((x) => x.operation === operation && x.nodes?.includes(name));
  return <Fragment>
    <p><State kind={s.kind}>{s.word}</State></p>
    <Section title="Now">
      {all.length === 0 ? <p class="none">Nothing but serving.</p> : <ul>{all.map((text) => <li key={text}>{text}</li>)}</ul>}
    </Section>
    <Section title="Facts">
      <Facts rows={[
        ["Rack", place(n)], ["Host", n.host], ["Address", a?.address], ["Host ID", a?.hostID],
        ["Mode of Cassandra", a?.mode], ["Client traffic", a?.traffic], ["Cassandra", n.release], ["Agent", a?.version],
        ["JVM", a?.process], ["State that is wanted", n.record?.state], ["Owns", n.owns ? percent(n.owns) + " of the datacenter's data" : undefined],
        ["Tokens", n.tokens?.length], ["Load", n.load ? bytes(n.load) : undefined],
        ["Free", n.capacity ? `${bytes(n.free)} of ${bytes(n.capacity)}` : undefined], ["Disk before the start", a?.disk],
        ["Memory limit", r?.memory?.limit], ["Heap", r?.memory?.heap], ["Claims", n.claims], ["Pod", n.pod ? "there" : "none"],
        ["Configuration", r?.configuration?.message || r?.configuration?.hash],
        ["Restarts", r?.restarts && <Fragment>{r.restarts.count}{r.restarts.lastReason &&
          <Fragment>, the last one: {r.restarts.lastReason} <Age at={r.restarts.lastAt} /></Fragment>}</Fragment>],
      ]} />
    </Section>
    <Section title="Operations">
      <Table name="Operations" none="None is known." head={["Operation", "Phase", "Progress", "Since", "Ended", "Message"]}
        rows={(r?.operations ?? []).map((o) => [nameOf(n, o), <State kind={ofResult(o.phase)}>{o.phase}</State>,
          o.progress === undefined ? "–" : o.progress + " %", <Age at={o.startedAt} />, <Age at={o.finishedAt} />, o.message])} />
    </Section>
    <Section title="Change it, look closer">
      {a?.phase === "DownTooLong" && <Command does="Let it start anyway" words={on("start-anyway", "--reason", "...")} />}
      {recommended("Replace") && <Command does="Approve its replacement" words={on("replace", "--reason", "...")} />}
      {recommended("Repair") && <Command does="Have it repaired" words={on("repair", "--reason", "...")} />}
      <Command does="Log of Cassandra" words={["kubectl", "logs", name, "--container", "cassandra", "--namespace", is.namespace, "--tail", "100"]} />
      <Command does="nodetool" words={on("nodetool").concat("--", "status")} />
      <Command does="The record" words={["kubectl", "describe", "cassandranode", name, "--namespace", is.namespace]} />
      <Command does="Stop Cassandra, and keep the pod to look into" words={on("debug", "--reason", "...")} />
    </Section>
  </Fragment>;
}
