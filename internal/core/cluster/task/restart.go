package task

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/assess"
	"helenus.io/helenus/internal/core/config"
	"helenus.io/helenus/internal/core/facts"
	"helenus.io/helenus/internal/core/words"
)

// restarts says that a roll-out does what the task asks for: View.Wanted asks for it.
func (s *state) restarts() bool { return s.task.Spec.Type == v1alpha1.TaskRestart }

// readRestart says whether a node runs by a record that asks for the restart.
func (s *state) readRestart(v *assess.View, n *facts.Node, out *v1alpha1.TaskNode) {
	asked, agent, runs := n.Record.Spec.Configuration.RestartedAt, n.CurrentAgent(), n.Record.Status.Configuration
	if asked == nil || asked.Before(s.status.StartedAt) {
		s.pending(v, out, "", false)
		return
	}
	now := metav1.NewTime(v.Now).Rfc3339Copy()
	out.Phase = v1alpha1.TaskRunning
	if out.StartedAt == nil {
		out.StartedAt, out.Attempts = &now, 1
	}
	hash, err := config.Hash(&n.Record.Spec.Configuration)
	switch {
	case err != nil:
		s.pending(v, out, err.Error(), false)
	case agent == nil:
		s.pending(v, out, assess.WhyNoAnswer(n), false)
	case !agent.Ready || runs == nil || runs.Hash != hash || runs.RestartNeeded:
		why := "its JVM restarts"
		if trouble := assess.Trouble(n); trouble != "" {
			why = trouble
		}
		s.pending(v, out, words.Shorten(why, longestResult), false)
	default:
		out.Phase, out.FinishedAt, out.Message = v1alpha1.TaskSucceeded, &now, "its JVM has restarted"
	}
}
