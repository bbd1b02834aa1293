package guard

// Rules are the guards that are asked, by what they are asked for. They are a value that is passed
// along: a test that takes a guard away changes a copy.
type Rules struct {
	// Formation and Adoption, before the first ring; Restore too, if that is made from a backup.
	Formation, Adoption, Restore []Guard[Nodes]
	// PendingNode on a node before it is its turn to join; BeforeJoin on the ring that it joins;
	// Placement on what the ring will be with it.
	PendingNode, BeforeJoin []Guard[Nodes]
	Placement               []Guard[Joining]
	// BeforeLeave on the members before one of them leaves; Leaving on what the ring will be
	// without those that are to leave.
	BeforeLeave []Guard[Nodes]
	Leaving     []Guard[Leaving]
	// NewDatacenter on the nodes of a datacenter that is added, AddedDatacenter on how it is
	// described.
	NewDatacenter   []Guard[Nodes]
	AddedDatacenter []Guard[Adding]
	// Withdrawing on the keyspaces that lose their replicas in a datacenter.
	Withdrawing []Guard[Withdrawing]
	// Cleanup and Repair on the ring before these operations.
	Cleanup, Repair []Guard[Nodes]
	// Backup on the ring before its members take snapshots; Snapshots too, if these are kept until
	// they are uploaded.
	Backup, Snapshots []Guard[Nodes]
	// Releases on the members before any step but a roll-out, which makes them one.
	Releases []Guard[Nodes]
	// NewRelease on the members before the first of them gets another release.
	NewRelease []Guard[Nodes]
	// Room on the members that are to get new pods, before one of them is taken down.
	Room []Guard[Recreated]
	// RollOut on the members that are to be up before a node is taken down; Seen on those that are
	// up before a node counts as back.
	RollOut, Seen []Guard[Nodes]
	// Replace on a lost member and the others, before it is replaced.
	Replace []Guard[Replacing]
	// Undelivered on what members keep for others before the next wave.
	Undelivered []Guard[Kept]
	// Encryption on the nodes before they get the next stage of encryption.
	Encryption []Guard[Encrypting]
	// Authority on the nodes before an authority goes on to its next stage.
	Authority []Guard[Rotating]
	// Drain on the members of a ring that is to stop, before they are drained.
	Drain []Guard[Nodes]
	// StopDatacenter on the members of a datacenter before they are stopped.
	StopDatacenter []Guard[Stopping]
}

// All are the rules of the product.
func All() Rules {
	return Rules{
		Formation: formation, Adoption: adoption, Restore: restoration,
		PendingNode: pendingNode, BeforeJoin: beforeJoin,
		Placement: placement, BeforeLeave: beforeLeave, Leaving: leaving,
		NewDatacenter: newDatacenter, AddedDatacenter: addedDatacenter, Withdrawing: withdrawing,
		Cleanup: cleanup, Repair: repair, Backup: backup, Snapshots: snapshots,
		Releases: releases, NewRelease: newRelease, Room: room, RollOut: rollOut, Seen: seen, Undelivered: undelivered,
		Encryption: encryption, Authority: authority,
		Drain: drain, StopDatacenter: stopDatacenter, Replace: replace,
	}
}
