import { Fragment, h } from "preact";
import { needs, ofOutcome } from "./judge";
import { Age, Command, Section, some, State, Table } from "./parts";
import { kubectl } from "./ring";
import { View } from "./types";

// Plan is what the operator would do next, and why not.
export function Plan({ is }: { is: View }) {
  const s = is.status;
  const step = s.step;
  const waiting = needs(s);
  return <Fragment>
    {waiting.length > 0 && <Section title="Needs a person">
      <ul class="needs">{waiting.map((n, i) => <li key={i}><State kind={n.kind}>{n.what}</State> <span>{n.why}</span></li>)}</ul>
      {step?.hold && <Command does="Continue the roll-out" words={kubectl(is, "resume")} />}
    </Section>}
    {is.ledgerProblem && <p class="callout"><State kind="bad">The ledger cannot be read</State> {is.ledgerProblem}</p>}
    <Section title="Now">
      {step ? <Fragment>
        <p><strong>{step.name}</strong>{step.since && <Fragment> since <Age at={step.since} /></Fragment>}{" "}
          {step.message}</p>
        {step.progress !== undefined && <p><label>Progress <progress max={100} value={step.progress} /> {step.progress} %</label></p>}
        {step.nodes && <p>Nodes: {some(step.nodes, 20)}</p>}
      </Fragment> : <p class="none">No step is open, and none is next.</p>}
      <Table name="Open steps" head={["Open step", "Stage", "For", "Nodes", "State"]}
        rows={(is.ledger?.steps ?? []).map((o) => [o.kind, o.stage, <Age at={o.stageSince} />, some(o.nodes),
          o.suspended ? <State kind="idle">Suspended</State> : <State kind="work">Open</State>])} />
    </Section>
    <Section title="Why not">
      <Table name="Blocked steps" none="Nothing is held back." head={["Blocked", "Reason", "Nodes", "Waits for"]}
        rows={[...(is.plan.blocked ?? []).map((b) => [b.step, b.reason, some(b.nodes), b.message]),
          ...is.nodes.flatMap((n) => n.record?.status.blocked
            ? [["(agent)", n.record.status.blocked.reason, n.name, n.record.status.blocked.message]] : [])]} />
      <Table name="Notices" head={["Notice", "Nodes", "Message"]}
        rows={(is.plan.notices ?? []).map((n) => [n.reason, some(n.nodes), n.message])} />
      <Table name="Exceptions" head={["Exception", "State", "Node", "Message"]}
        rows={(s.exceptions ?? []).map((e) => [e.name, e.state, e.node ?? "–", e.message])} />
    </Section>
    <Section title="Next">
      <Table name="Steps" head={["Step", "Outcome", "Message"]}
        rows={is.plan.steps.map((r) => [r.step, <State kind={ofOutcome(r.outcome)}>{r.outcome}</State>, r.message])} />
      {is.plan.writes && <Fragment>
        <h3>Writes of the last pass, in this order</h3>
        <ol>{is.plan.writes.slice(0, 200).map((w, i) => <li key={i}>{w.text}</li>)}</ol>
      </Fragment>}
    </Section>
    <RollOut is={is} />
    <Section title="Look closer">
      <Command does="The plan as of this moment" words={kubectl(is, "plan")} />
      <Command does="What is wrong with the installation or the cluster" words={kubectl(is, "doctor")} />
    </Section>
  </Fragment>;
}

function RollOut({ is }: { is: View }) {
  const r = is.rollOut;
  if (!r) return <Section title="Roll-out"><p class="none">Every node is as the spec describes it.</p></Section>;
  return <Section title="Roll-out">
    <Changes is={is} />
    {r.newNodes && <p>New nodes: {some(r.newNodes, 20)}</p>}
    {r.waves && <Fragment>
      <h3>Waves</h3>
      <ol>{r.waves.slice(0, 200).map((w, i) => <li key={i}>{some(w, 20)}</li>)}</ol>
      {r.estimate && r.estimate !== "0s" && <p>They take about {r.estimate}, by the last restarts.</p>}
    </Fragment>}
    {r.held && <p class="callout"><State kind="idle">The rest is held</State> {r.held}</p>}
  </Section>;
}

// Changes are the differences of nodes to the spec.
export function Changes({ is }: { is: View }) {
  return <Table name="Changes" none="No node differs from the spec." head={["Field", "Is", "Wanted", "Takes", "Nodes"]}
    rows={(is.rollOut?.changes ?? []).map((c) => [<code>{c.field}</code>, <code>{c.have}</code>, <code>{c.want}</code>,
      c.takes, some(c.nodes)])} />;
}
