import { Fragment, h } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { get } from "./api";
import { at } from "./clusters";
import { Age, Command, percent, Section, State, Table } from "./parts";
import { Held, View } from "./types";
import { kubectl } from "./ring";

const types = ["text", "int", "bigint", "uuid", "blob"];

interface Column { type: string; value: string }
interface Answer { held?: Held; error?: string; asked: string; words: string[] }

// Replicas asks who holds a keyspace, or a key that is typed. One empty column stands for the keyspace.
export function Replicas({ is }: { is: View }) {
  const keyspaces = Object.keys(is.keyspaces ?? {});
  const [picked, pick] = useState("");
  const [columns, set] = useState<Column[]>([{ type: "text", value: "" }]);
  const [answer, show] = useState<Answer>();
  const asking = useRef<AbortController>();
  useEffect(() => () => asking.current?.abort(), []);
  if (keyspaces.length === 0) return null;
  const keyspace = keyspaces.includes(picked) ? picked : keyspaces[0];
  const change = (i: number, to: Partial<Column>) => set(columns.map((c, j) => i === j ? { ...c, ...to } : c));
  const ask = async (e: Event) => {
    e.preventDefault();
    asking.current?.abort();
    const { signal } = asking.current = new AbortController();
    const key = columns.length === 1 && columns[0].value === "" ? [] : columns.map((c) => c.type + ":" + c.value);
    const query = new URLSearchParams([["keyspace", keyspace], ...key.map((c) => ["column", c])]);
    const about = { asked: new Date(Date.now()).toISOString(), words: [...kubectl(is, "replicas"), keyspace, ...key] };
    try {
      show({ ...about, held: await get<Held>(
        `/v1/namespaces/${encodeURIComponent(is.namespace)}/clusters/${encodeURIComponent(is.cluster)}/replicas?${query}`, signal) });
    } catch (e) {
      if (!signal.aborted) show({ ...about, error: (e as Error).message });
    }
  };
  return <Section title="Replicas">
    <form onSubmit={ask} autocomplete="off">
      <p><label>Keyspace <select value={keyspace} onChange={(e) => pick(e.currentTarget.value)}>
        {keyspaces.map((k) => <option key={k}>{k}</option>)}</select></label></p>
      {columns.map((c, i) => {
        const column = columns.length > 1 ? `Column ${i + 1} of the key` : "Partition key";
        return <p key={i}>
          <label>{column} <input value={c.value} onInput={(e) => change(i, { value: e.currentTarget.value })} /></label>{" "}
          <label>of type <select value={c.type} aria-label={"Type of " + column.toLowerCase()}
            onChange={(e) => change(i, { type: e.currentTarget.value })}>
            {types.map((t) => <option key={t}>{t}</option>)}</select></label>
        </p>;
      })}
      <p><button type="submit">Show who holds it</button>{" "}
        <button type="button" onClick={() => set([...columns, { type: "text", value: "" }])}>Add a column of the key</button>{" "}
        {columns.length > 1 && <button type="button" onClick={() => set(columns.slice(0, -1))}>Remove the last</button>}</p>
    </form>
    <p class="none">Without a key it shows the whole keyspace. No row is read.</p>
    {answer?.error && <p class="callout" role="alert"><State kind="bad">No answer</State> {answer.error}</p>}
    {answer?.held && <Fragment>
      <p role="status">{answer.held.nodes.length} of {is.nodes.length} nodes hold {answer.held.token
        ? <Fragment>the key with token <code>{answer.held.token}</code> in</Fragment> : "keyspace"}{" "}
        {answer.held.keyspace} ({answer.held.replication}), <Age at={answer.asked} /></p>
      <ul class="needs">{answer.held.served.map((s) => <li key={s.datacenter}>
        <State kind={s.served ? "ok" : "bad"}>{s.served ? "Served" : "Not served"}</State> <span>{s.message}</span></li>)}</ul>
      <Table name="Replicas" none="No node holds it."
        head={answer.held.token ? ["Node", "Rack", "Up"] : ["Node", "Rack", "Up", "Holds"]}
        rows={answer.held.nodes.map((n) => [
          is.nodes.some((m) => m.name === n.node) ? <a href={at(is, "node/" + n.node)}>{n.node}</a> : n.node,
          `${n.datacenter}/${n.rack}`, n.up ? <State kind="ok">Up</State> : <State kind="bad">Down</State>,
          ...answer.held!.token ? [] : [percent(n.share)],
        ])} />
      <Command does="Ask the same in a terminal" words={answer.words} />
    </Fragment>}
  </Section>;
}
