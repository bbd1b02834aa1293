package apiserver

import (
	"fmt"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The limits of what an event says, in characters.
const (
	mostOfReason = 128
	mostOfNote   = 1024
)

// messageRules are those of the events that programs tell users by.
func messageRules() rules {
	r := dataOnly()
	r.createOnUpdate, r.uncollected = true, true
	r.fields = func(object client.Object) map[string]string {
		e := object.(*eventsv1.Event)
		return map[string]string{
			"regarding.kind": e.Regarding.Kind, "regarding.namespace": e.Regarding.Namespace,
			"regarding.name": e.Regarding.Name, "regarding.uid": string(e.Regarding.UID),
			"reason": e.Reason, "reportingController": e.ReportingController, "type": e.Type,
		}
	}
	r.validate = func(object client.Object) (errs field.ErrorList) {
		e := object.(*eventsv1.Event)
		if e.EventTime.IsZero() {
			if e.Namespace != e.Regarding.Namespace && (e.Regarding.Namespace != "" || e.Namespace != "default") {
				errs = append(errs, field.Invalid(field.NewPath("involvedObject", "namespace"), e.Regarding.Namespace,
					"does not match event.namespace"))
			}
			return errs
		}
		if e.Regarding.Namespace == "" && e.Namespace != "default" && e.Namespace != "kube-system" {
			errs = append(errs, field.Invalid(field.NewPath("involvedObject", "namespace"), e.Regarding.Namespace,
				"does not match event.namespace"))
		}
		if e.ReportingController == "" {
			errs = append(errs, field.Required(field.NewPath("reportingController"), ""))
		}
		for _, why := range validation.IsQualifiedName(e.ReportingController) {
			errs = append(errs, field.Invalid(field.NewPath("reportingController"), e.ReportingController, why))
		}
		for name, value := range map[string]string{"reportingInstance": e.ReportingInstance, "action": e.Action,
			"reason": e.Reason} {
			switch {
			case value == "":
				errs = append(errs, field.Required(field.NewPath(name), ""))
			case len(value) > mostOfReason:
				errs = append(errs, field.Invalid(field.NewPath(name), "",
					fmt.Sprintf("can have at most %d characters", mostOfReason)))
			}
		}
		if len(e.Note) > mostOfNote {
			errs = append(errs, field.Invalid(field.NewPath("message"), "",
				fmt.Sprintf("can have at most %d characters", mostOfNote)))
		}
		return errs
	}
	r.validateCreate = func(object client.Object) (errs field.ErrorList) {
		e := object.(*eventsv1.Event)
		errs = validSeries(e.Series)
		if e.EventTime.IsZero() {
			errs = append(errs, field.Required(field.NewPath("eventTime"), ""))
		}
		if e.Type != "Normal" && e.Type != "Warning" {
			errs = append(errs, field.Invalid(field.NewPath("type"), "", fmt.Sprintf("has invalid value: %v", e.Type)))
		}
		return errs
	}
	// What was said stays said; only how often may change.
	r.validateUpdate = func(object, old client.Object) (errs field.ErrorList) {
		e, before := object.(*eventsv1.Event), old.(*eventsv1.Event)
		if (e.Series == nil) != (before.Series == nil) || e.Series != nil && *e.Series != *before.Series {
			errs = validSeries(e.Series)
		}
		for name, is := range map[string][2]any{
			"involvedObject": {e.Regarding, before.Regarding}, "reason": {e.Reason, before.Reason},
			"message": {e.Note, before.Note}, "type": {e.Type, before.Type},
			"eventTime": {e.EventTime, before.EventTime}, "action": {e.Action, before.Action},
			"related":             {e.Related, before.Related},
			"reportingController": {e.ReportingController, before.ReportingController},
			"reportingInstance":   {e.ReportingInstance, before.ReportingInstance},
		} {
			errs = append(errs, immutable(is[0], is[1], field.NewPath(name))...)
		}
		return errs
	}
	return r
}

func validSeries(s *eventsv1.EventSeries) (errs field.ErrorList) {
	if s == nil {
		return nil
	}
	if s.Count < 2 {
		errs = append(errs, field.Invalid(field.NewPath("series.count"), "", "should be at least 2"))
	}
	if s.LastObservedTime.IsZero() {
		errs = append(errs, field.Required(field.NewPath("series.lastObservedTime"), ""))
	}
	return errs
}
