import { Fragment, h, VNode } from "preact";
import { useMemo, useState } from "preact/hooks";
import { at } from "./clusters";
import { doing, ofNode } from "./judge";
import { bytes, Command, percent, Section, State, Table } from "./parts";
import { Replicas } from "./replicas";
import { Node, View } from "./types";

const places = 65536; // of a token, as the operator gives them
const most = 200; // rows that are drawn at first

export function Ring({ is }: { is: View }) {
  const [filter, setFilter] = useState("");
  const [all, showAll] = useState(false);
  const shown = is.nodes.filter((n) => matches(n, filter.toLowerCase()));
  const rows = all ? shown : shown.slice(0, most);
  return <Fragment>
    <div class="columns">
      <Section title="Ring"><Circle nodes={is.nodes} view={is} /></Section>
      <Section title="Datacenters">
        <Table name="Datacenters" none="None yet." head={["Datacenter", "State", "Racks", "Nodes that serve", "Data"]}
          rows={(is.status.datacenters ?? []).map((d) => {
            const of = is.nodes.filter((n) => n.datacenter === d.name);
            return [d.name, d.formed ? <State kind="ok">Formed</State> : <State kind="work">Not formed</State>,
              new Set(of.map((n) => n.rack)).size, `${d.ready} of ${d.nodes}`,
              bytes(of.reduce((sum, n) => sum + (n.load ?? 0), 0))];
          })} />
        <Table name="Keyspaces" head={["Keyspace", "Replication"]} rows={Object.entries(is.keyspaces ?? {})} />
      </Section>
    </div>
    <Section title="Nodes">
      <p><label>Filter by name, rack, version or phase{" "}
        <input type="search" value={filter} onInput={(e) => setFilter(e.currentTarget.value)} /></label>{" "}
        <span role="status">{shown.length} of {is.nodes.length} nodes</span></p>
      <Table name="Nodes" none="No node."
        head={["Node", "Rack", "Phase", "Traffic", "Version", "Owns", "Load", "Free", "Tokens", "Now"]}
        rows={rows.map((n) => {
          const s = ofNode(n);
          return [
            <a href={at(is, "node/" + n.name)}>{n.name}</a>, place(n), <State kind={s.kind}>{s.word}</State>,
            n.agent?.traffic ?? "–", n.release ?? "–", percent(n.owns), bytes(n.load),
            n.capacity ? `${bytes(n.free)} of ${bytes(n.capacity)}` : "–", n.tokens?.length ?? 0, now(n),
          ];
        })} />
      {rows.length < shown.length &&
        <button type="button" onClick={() => showAll(true)}>Show all {shown.length} nodes</button>}
    </Section>
    <Replicas is={is} />
    <Section title="Change it">
      {is.paused ? <Command does="Begin steps again" words={kubectl(is, "resume")} />
        : <Command does="Begin nothing new" words={kubectl(is, "pause")} />}
      <Command does="Restart every JVM, one after the other" words={kubectl(is, "restart")} />
      {is.stopped ? <Command does="Start all nodes" words={kubectl(is, "start")} />
        : <Command does="Stop all nodes" words={kubectl(is, "stop")} />}
    </Section>
  </Fragment>;
}

export function kubectl(is: View, ...words: string[]): string[] {
  return ["kubectl", "helenus", ...words, is.cluster, "--namespace", is.namespace];
}

export function place(n: Node): string { return `${n.datacenter ?? "–"}/${n.rack ?? "–"}`; }

function matches(n: Node, filter: string): boolean {
  return filter === "" || [n.name, place(n), n.release, ofNode(n).word].some((t) => t?.toLowerCase().includes(filter));
}

function now(n: Node) {
  const all = doing(n);
  return all.length === 0 ? "–" : <ul class="plain">{all.map((text) => <li key={text}>{text}</li>)}</ul>;
}

// Circle draws a circle for each datacenter, in which each node has the ranges that end at its tokens. What it
// shows stands in the table of nodes, too, so that nobody has to read it.
function Circle({ nodes, view }: { nodes: Node[]; view: View }) {
  const placed = nodes.filter((n) => n.tokens?.length);
  // Tokens change rarely, and all else of a node often.
  const same = placed.map((n) => n.name + n.tokens!.reduce((sum, t) => (sum * 31 + t) >>> 0, 7)).join();
  const arcs = useMemo(() => arcsOf(placed), [same]);
  if (placed.length === 0) return <p class="none">No node has tokens yet.</p>;
  const datacenters = [...arcs.keys()];
  const racks = [...new Set(placed.map(place))];
  const words = datacenters.map((d) => `${d} with ${placed.filter((n) => n.datacenter === d).length} nodes`).join(", ");
  return <figure>
    <svg viewBox="-52 -52 104 104" role="img" aria-label={`The ring by tokens: ${words}. The table of nodes says the same.`}>
      {datacenters.map((d, i) => {
        const width = Math.min(12, 40 / datacenters.length);
        return <g key={d} stroke-width={width * 0.8} fill="none">
          {placed.filter((n) => n.datacenter === d).map((n) => arc(n, arcs.get(d)!.get(n.name)!, i, width, racks, view))}
        </g>;
      })}
      <path d="M0 -52V-38" class="zero" />
    </svg>
    <figcaption>{datacenters.length > 1 ? `From outside to inside: ${datacenters.join(", ")}. ` : ""}
      Shades are racks; ranges of nodes that do not serve are striped. The smallest token is at the top.</figcaption>
  </figure>;
}

function arc(n: Node, ranges: [number, number][], ring: number, width: number, racks: string[], view: View): VNode {
  const radius = 50 - width * (ring + 0.5);
  const point = (t: number) => {
    const angle = t / places * 2 * Math.PI;
    return `${(radius * Math.sin(angle)).toFixed(2)} ${(-radius * Math.cos(angle)).toFixed(2)}`;
  };
  const path = ranges.map(([from, to]) => {
    const half = (from + to) / 2; // of one that goes all around, an arc would have no end
    return `M${point(from)}A${radius} ${radius} 0 0 1 ${point(half)}A${radius} ${radius} 0 0 1 ${point(to)}`;
  }).join("");
  const { kind, word } = ofNode(n);
  // An image has no links in it: this one is for a mouse alone, and the table has it for all.
  return <path key={n.name} d={path} class={`arc ${kind} rack${racks.indexOf(place(n)) % 4}`}
    onClick={() => { location.hash = at(view, "node/" + n.name); }}><title>{n.name}, {place(n)}, {word}</title></path>;
}

// arcsOf are the ranges of each node by datacenter, each from the token before it to its own.
function arcsOf(nodes: Node[]): Map<string, Map<string, [number, number][]>> {
  const tokens = new Map<string, [number, string][]>();
  for (const n of nodes) {
    const of = tokens.get(n.datacenter ?? "–") ?? [];
    tokens.set(n.datacenter ?? "–", of);
    for (const t of n.tokens!) of.push([t, n.name]);
  }
  const out = new Map<string, Map<string, [number, number][]>>();
  for (const [datacenter, all] of [...tokens].sort()) {
    all.sort((a, b) => a[0] - b[0]);
    const of = new Map<string, [number, number][]>();
    all.forEach(([token, name], i) => {
      const before = i > 0 ? all[i - 1][0] : all[all.length - 1][0] - places;
      of.set(name, [...of.get(name) ?? [], [before, token]]);
    });
    out.set(datacenter, of);
  }
  return out;
}
