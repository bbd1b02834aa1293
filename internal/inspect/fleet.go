package inspect

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/types"

	"helenus.io/helenus/internal/inspectapi"
)

// mostReviews bounds what the API server is asked for one list.
const mostReviews = 20

// fleet answers with the clusters that somebody may get. It asks for all there are, then for all of
// a namespace, then for one alone: those who may see many cost few questions.
func (s *Server) fleet(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	user, ok := s.known(ctx, w, r)
	if !ok {
		return
	}
	all, err := s.Fleet(ctx, r.URL.Query().Get("namespace"))
	if err != nil {
		s.fail(w, "list clusters", err)
		return
	}
	out := inspectapi.Fleet{Clusters: []inspectapi.Brief{}}
	answers := map[types.NamespacedName]bool{}
	for _, c := range all {
		may, known := false, true
		for _, of := range []types.NamespacedName{{}, {Namespace: c.Namespace},
			{Namespace: c.Namespace, Name: c.Cluster}} {
			if may, known = answers[of]; !known && len(answers) < mostReviews {
				if may, _, err = s.Reviews.May(ctx, "get", user, of); err != nil {
					s.fail(w, "authorise", err)
					return
				}
				answers[of], known = may, true
			}
			if may || !known {
				break
			}
		}
		switch {
		case may:
			out.Clusters = append(out.Clusters, c)
		case !known:
			out.Left++
		}
	}
	write(w, http.StatusOK, out)
}
