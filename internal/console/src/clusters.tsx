import { Fragment, h } from "preact";
import { useEffect, useState } from "preact/hooks";
import { poll } from "./api";
import { needs, Need } from "./judge";
import { Section, State, Table } from "./parts";
import { Brief, Fleet } from "./types";

const pause = 15_000;

export function at(c: { namespace: string; cluster: string }, page = "ring"): string {
  return `#/${c.namespace}/${c.cluster}/${page}`;
}

// Clusters is the fleet: what needs a person first.
export function Clusters({ namespace, failed }: { namespace: string; failed: (e?: Error) => void }) {
  const [fleet, show] = useState<Fleet>();
  const [filter, setFilter] = useState("");
  useEffect(() => {
    show(undefined);
    const query = namespace === "" ? "" : "?namespace=" + encodeURIComponent(namespace);
    return poll<Fleet>("/v1/clusters" + query, pause, (is) => { show(is); failed(); }, failed);
  }, [namespace]);
  if (!fleet) return <p>Asking the operator …</p>;
  const all = fleet.clusters.map((c) => ({ c, needs: needs(c) }));
  all.sort((a, b) => rank(a.needs) - rank(b.needs));
  const waiting = all.filter((x) => x.needs.length > 0);
  const shown = all.filter(({ c }) => (c.namespace + "/" + c.cluster).includes(filter));
  return <Fragment>
    {waiting.length > 0 && <Section title="Needs a person">
      <ul class="needs">{waiting.flatMap(({ c, needs }) => needs.map((n, i) => <li key={c.namespace + "/" + c.cluster + i}>
        <State kind={n.kind}>{n.what}</State> <a href={at(c, "plan")}>{c.namespace}/{c.cluster}</a> <span>{n.why}</span>
      </li>))}</ul>
    </Section>}
    <Section title="All clusters">
      <p><label>Filter by name <input type="search" value={filter} onInput={(e) => setFilter(e.currentTarget.value)} /></label></p>
      <Table name="Clusters" none="No cluster that you may see."
        head={["Cluster", "Nodes that serve", "Cassandra", "State", "Now", "Blocked", "Notices"]}
        rows={shown.map(({ c, needs }) => [
          <a href={at(c)}>{c.namespace}/{c.cluster}</a>, `${c.readyNodes} of ${c.nodes}`, release(c), state(c, needs),
          c.step ? c.step.name + (c.step.progress === undefined ? "" : ` ${c.step.progress} %`) : "–",
          c.blocked ?? 0, c.notices ?? 0,
        ])} />
      {fleet.left ? <p>Of {fleet.left} more it is not known yet whether you may see them; name a namespace with
        {" "}<code>kubectl helenus console --namespace</code> to be asked about fewer.</p> : null}
    </Section>
  </Fragment>;
}

function rank(needs: Need[]): number {
  return needs.some((n) => n.kind === "bad") ? 0 : needs.length > 0 ? 1 : 2;
}

function release(c: Brief): string {
  const runs = c.version;
  if (!runs) return c.wanted + " wanted";
  const text = runs.lowest === runs.highest ? runs.lowest : `${runs.lowest} to ${runs.highest}`;
  return text === c.wanted ? text : `${text}, ${c.wanted} wanted`;
}

function state(c: Brief, needs: Need[]) {
  if (needs.length > 0) return <State kind={needs[0].kind}>{needs[0].what}</State>;
  if (c.deleting) return <State kind="work">Being deleted</State>;
  if (c.stopped) return <State kind="idle">Stopped</State>;
  if (c.paused) return <State kind="idle">Paused</State>;
  const ready = c.conditions?.find((x) => x.type === "Ready");
  return ready?.status === "True" ? <State kind="ok">Ready</State> : <State kind="work">{ready?.reason ?? "New"}</State>;
}
