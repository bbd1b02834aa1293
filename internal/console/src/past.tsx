import { Fragment, h } from "preact";
import { nameOf, ofResult } from "./judge";
import { Age, Command, Section, some, State, Table, took } from "./parts";
import { Changes } from "./plan";
import { kubectl } from "./ring";
import { View } from "./types";

export function History({ is }: { is: View }) {
  return <Fragment>
    <Section title="Steps that have ended">
      <Table name="Steps that have ended" none="None yet." head={["Step", "Result", "Ended", "Took", "Message"]}
        rows={(is.status.history ?? []).map((r) => [r.step, <State kind={ofResult(r.result)}>{r.result}</State>,
          <Age at={r.finishedAt} />, took(r.startedAt, r.finishedAt), r.message])} />
    </Section>
    <Section title="Restarts of JVMs that nobody asked for">
      <Table name="Restarts" none="None is known." head={["Node", "Reason", "Ended"]}
        rows={(is.status.jvmRestarts ?? []).map((r) => [r.node, r.reason ?? "–", <Age at={r.at} />])} />
    </Section>
    <Section title="Look closer">
      <Command does="Events of the cluster" words={["kubectl", "get", "events", "--namespace", is.namespace,
        "--field-selector", "involvedObject.name=" + is.cluster]} />
      <Command does="All that is known, in a file to pass on" words={kubectl(is, "report")} />
    </Section>
  </Fragment>;
}

export function Operations({ is }: { is: View }) {
  const running = is.nodes.flatMap((n) => (n.record?.status.operations ?? []).map((o) => ({ n, o })))
    .filter(({ o }) => o.phase === "Running");
  const repair = is.status.repair;
  return <Fragment>
    <Section title="Tasks">
      <Table name="Tasks" none="There is no CassandraTask of this cluster."
        head={["Task", "Type", "Phase", "Nodes done", "Age", "Message"]}
        rows={(is.tasks ?? []).map((t) => [t.name, t.type, <State kind={ofResult(t.status.phase)}>{t.status.phase ?? "New"}</State>,
          `${t.status.succeeded ?? 0} of ${t.status.total ?? 0}` + (t.status.failed ? `, ${t.status.failed} failed` : ""), <Age at={t.createdAt} />,
          [t.status.message, ...(t.status.nodes ?? []).map((n) => `${n.node} ${n.phase}: ${n.message ?? ""}`)].filter(Boolean).join("; ")])} />
      <Command does="Have all nodes run an operation" words={kubectl(is, "task").concat("Cleanup", "--wait")} />
    </Section>
    <Section title="Operations that run">
      <Table name="Operations" none="No node runs one." head={["Node", "Operation", "Progress", "Since", "Message"]}
        rows={running.map(({ n, o }) => [n.name, nameOf(n, o), o.progress === undefined ? "–" : o.progress + " %",
          <Age at={o.startedAt} />, o.message])} />
    </Section>
    <Section title="Repairs">
      {repair && <p>Mode {repair.mode ?? "–"}{repair.progress !== undefined && `; of ${repair.progress} % of the tables none is due`}
        {repair.rate !== undefined && `; repairs ran at ${repair.rate}B/s lately`}</p>}
      <Table name="Repairs" none="No table is known that must be repaired."
        head={["Table", "Last repaired", "Deadline", "Compaction"]}
        rows={[...repair?.tables ?? []].sort((a, b) => a.deadline.localeCompare(b.deadline)).map((t) => [t.name,
          <Age at={t.lastRepaired} />, <time dateTime={t.deadline}>{t.deadline}</time>, t.compaction ?? "–"])} />
    </Section>
  </Fragment>;
}

// flat are the values of a document by their paths, as a person writes them in the spec.
function flat(value: unknown, path: string): [string, string][] {
  if (typeof value === "object" && value !== null && !Array.isArray(value) && Object.keys(value).length > 0) {
    return Object.entries(value).flatMap(([name, v]) => flat(v, path === "" ? name : path + "." + name));
  }
  return value === "" ? [] : [[path, typeof value === "string" ? value : JSON.stringify(value)]];
}

export function Configuration({ is }: { is: View }) {
  return <Fragment>
    <Section title="Difference to the spec"><Changes is={is} /></Section>
    {(is.configurations ?? []).map((c, i) => <Section key={i} title={`Configuration of ${some(c.nodes, 3)}`}>
      <Table name={`Configuration of ${some(c.nodes, 3)}`} head={["Setting", "Value"]}
        rows={flat(c.configuration, "").map(([path, value]) => [<code>{path}</code>, <code>{value}</code>])} />
    </Section>)}
    <Section title="Change it">
      <p>These are the settings that the spec and Helenus set, as the nodes' records have them; all others are those of
        the image. Environment variables are not shown.</p>
      <Command does="Edit the spec" words={["kubectl", "edit", "cassandracluster", is.cluster, "--namespace", is.namespace]} />
      <Command does="Judge a spec before it is applied" words={["kubectl", "helenus", "plan", "--from", is.cluster + ".yaml", "--diff"]} />
    </Section>
  </Fragment>;
}
