// What the operator answers; see internal/inspectapi/view.go.

export interface Condition { type: string; status: string; reason: string; message: string; lastTransitionTime: string }
export interface Blocked { step: string; reason: string; message?: string; nodes?: string[] }
export interface Notice { reason: string; message?: string; nodes?: string[] }
export interface Recommended { operation: string; message?: string; nodes?: string[] }
export interface Step { name: string; message?: string; nodes?: string[]; since?: string; progress?: number; hold?: string }
export interface Range { lowest: string; highest: string }

export interface Brief {
  namespace: string; cluster: string; wanted: string; version?: Range; nodes: number; readyNodes: number;
  conditions?: Condition[]; step?: Step; blocked?: number; notices?: number; recommended?: Recommended[];
  paused?: boolean; stopped?: boolean; deleting?: boolean;
}

export interface Fleet { clusters: Brief[]; left?: number }

export interface History { step: string; result: string; message?: string; startedAt: string; finishedAt: string }
export interface TableRepair { name: string; lastRepaired?: string; deadline: string; compaction?: string }

export interface Status {
  observedGeneration?: number; conditions?: Condition[]; step?: Step; blocked?: Blocked[]; notices?: Notice[];
  exceptions?: { name: string; state: string; node?: string; message?: string }[];
  repair?: { mode?: string; progress?: number; rate?: string; tables?: TableRepair[] };
  recommended?: Recommended[]; history?: History[];
  jvmRestarts?: { node: string; reason?: string; at: string }[];
  datacenters?: { name: string; formed: boolean; nodes: number; ready: number }[];
  version?: Range; nodes: number; readyNodes: number;
}

export interface Intent { id: string; startedAt?: string; finishedAt?: string; withdrawnAt?: string; message?: string }
export interface Operation {
  id: string; phase: string; progress?: number; message?: string; startedAt?: string; finishedAt?: string;
}

export interface Node {
  name: string; datacenter?: string; rack?: string; pod: boolean; claims: number; host?: string;
  agent?: {
    version?: string; address?: string; hostID?: string; disk?: string; phase?: string; process?: string;
    traffic?: string; message?: string; mode?: string;
  };
  unreachable?: string; trouble?: string; serves?: boolean; release?: string; streaming?: boolean; pending?: number;
  hints?: number; load?: number; free?: number; capacity?: number; owns?: number; tokens?: number[];
  record?: {
    state: string; wanted?: Record<string, string>;
    status: {
      join?: Intent; restart?: Intent; operations?: Operation[];
      restarts?: { count: number; lastReason?: string; lastAt?: string };
      memory?: { limit?: string; heap?: string; direct?: string };
      blocked?: { reason: string; message: string }; repairDue?: { reason: string; since: string }[];
      configuration?: { hash?: string; restartNeeded: boolean; message?: string };
    };
  };
}

export interface Held {
  keyspace: string; replication: string; token?: string;
  served: { datacenter?: string; served: boolean; message: string }[];
  nodes: { node: string; datacenter: string; rack: string; up: boolean; share?: number }[];
}

export interface Task {
  name: string; type: string; createdAt: string;
  status: {
    phase?: string; message?: string; total?: number; succeeded?: number; failed?: number;
    nodes?: { node: string; phase: string; message?: string }[];
  };
}

export interface View {
  operator: { pod: string; version: string }; namespace: string; cluster: string; generation: number;
  deleting?: boolean; wanted: string; paused?: boolean; stopped?: boolean; status: Status;
  ledger?: {
    formed?: string[]; members: number;
    steps?: { id: string; kind: string; stage: string; stageSince: string; nodes?: string[]; suspended?: boolean }[];
  };
  ledgerProblem?: string;
  plan: {
    steps: { step: string; outcome: string; message?: string }[];
    writes?: { text: string }[];
    blocked?: Blocked[]; notices?: Notice[];
  };
  rollOut?: {
    changes?: { field: string; have: string; want: string; takes: string; nodes: string[] }[];
    newNodes?: string[]; waves?: string[][]; held?: string; estimate?: string;
  };
  nodes: Node[]; keyspaces?: Record<string, string>; tasks?: Task[];
  configurations?: { nodes: string[]; configuration: Record<string, unknown> }[];
}
