// What a state means for a person, from what the operator says. Nothing here is decided.

import { Condition, Node, Operation, Recommended, Step } from "./types";
import { Kind } from "./parts";

export interface Need { kind: Kind; what: string; why: string }

interface Judged { conditions?: Condition[]; step?: Step; recommended?: Recommended[] }

function condition(of: Judged, type: string): Condition | undefined {
  return of.conditions?.find((c) => c.type === type);
}

// expected are the reasons for which a cluster may be neither available nor healthy.
const expected = ["Forming", "Stopped"];

// needs are what a person should look at, the worst first.
export function needs(of: Judged): Need[] {
  const out: Need[] = [];
  const stalled = condition(of, "Stalled");
  if (stalled?.status === "True") out.push({ kind: "bad", what: "User action required", why: reasoned(stalled) });
  const available = condition(of, "Available");
  if (available?.status === "False" && !expected.includes(available.reason)) {
    out.push({ kind: "bad", what: "Not available", why: reasoned(available) });
  }
  if (of.step?.hold) out.push({ kind: "warn", what: "Held for you", why: of.step.message ?? of.step.name });
  for (const r of of.recommended ?? []) out.push({ kind: "warn", what: r.operation + " recommended", why: r.message ?? "" });
  const healthy = condition(of, "Healthy");
  if (healthy?.status === "False" && !expected.includes(healthy.reason)) {
    out.push({ kind: "warn", what: "Not healthy", why: reasoned(healthy) });
  }
  return out;
}

function reasoned(c: Condition): string { return c.reason + ": " + c.message; }

export function ofCondition(c: Condition): Kind {
  if (c.type === "Stalled") return c.status === "True" ? "bad" : "ok";
  if (c.type === "Reconciling") return c.status === "True" ? "work" : "idle";
  return c.status === "True" ? "ok" : expected.includes(c.reason) ? "idle" : "warn";
}

export function ofOutcome(outcome: string): Kind {
  return ({ Done: "ok", Act: "work", Wait: "idle", Retry: "idle", Stuck: "bad" } as Record<string, Kind>)[outcome] ?? "idle";
}

export function ofResult(result?: string): Kind {
  return ({ Succeeded: "ok", Failed: "bad", Running: "work" } as Record<string, Kind>)[result ?? ""] ?? "idle";
}

const userPhases = ["Failed", "DataLost", "DownTooLong", "AddressTaken"];

// ofNode is how a node is, in a word.
export function ofNode(n: Node): { kind: Kind; word: string } {
  const phase = n.agent?.phase;
  if (phase && userPhases.includes(phase)) return { kind: "bad", word: phase };
  if (n.serves) return { kind: "ok", word: phase ?? "Serves" };
  if (!n.pod) return { kind: n.record?.state === "Running" ? "bad" : "idle", word: "No pod" };
  if (!n.agent) return { kind: "bad", word: "Unreachable" };
  if (phase === "Normal") return { kind: "warn", word: "Normal, not ready" };
  return { kind: phase === "Stopped" || phase === "Left" || phase === "Deferred" ? "idle" : "work", word: phase ?? "Unknown" };
}

// doing is what happens on a node now, in sentences.
export function doing(n: Node): string[] {
  const out: string[] = [];
  const tell = (what: string, more?: string) => out.push(more ? what + ": " + more : what);
  const r = n.record?.status;
  if (r?.blocked) tell("blocked, " + r.blocked.reason, r.blocked.message);
  for (const [what, intent] of [["joins", r?.join], ["restarts", r?.restart]] as const) {
    if (intent && !intent.finishedAt && !intent.withdrawnAt) tell(what, intent.message);
  }
  for (const o of r?.operations ?? []) {
    if (o.phase === "Running") tell(nameOf(n, o) + (o.progress === undefined ? "" : ` ${o.progress} %`), o.message);
  }
  if (n.streaming) tell("streams");
  if (n.pending) tell(n.pending + " ranges pending");
  if (n.hints) tell(n.hints + " files of hints for others");
  if (r?.configuration?.restartNeeded) tell("needs a restart for its configuration");
  if (r?.repairDue?.length) tell("must be repaired", r.repairDue.map((d) => d.reason).join(", "));
  if (n.trouble) tell(n.trouble);
  else if (n.pod && n.unreachable) tell("its agent does not answer", n.unreachable);
  if (n.agent?.message) tell(n.agent.message);
  return out;
}

// nameOf is what an operation of a node is called.
export function nameOf(n: Node, o: Operation): string { return n.record?.wanted?.[o.id] ?? o.id; }
