package node

import (
	"slices"
	"testing"
	"time"

	"helenus.io/helenus/api/v1alpha1"
	"helenus.io/helenus/internal/core/facts"
)

func TestWhichCertificatesAreToBeProven(t *testing.T) {
	renewed := Certificate{Use: v1alpha1.UseInternode, Given: "b", Served: "a", SerialNumber: "7",
		NotAfter: epoch.Add(time.Hour)}
	forClients := Certificate{Use: v1alpha1.UseClients, Given: "c"}
	for name, c := range map[string]struct {
		change func(*Facts)
		want   []v1alpha1.CertificateUse
	}{
		"both": {func(*Facts) {}, []v1alpha1.CertificateUse{v1alpha1.UseInternode, v1alpha1.UseClients}},
		"CQL is closed": {func(f *Facts) {
			f.JVM.Ring.NativeRunning, f.Record.Spec.ClientTraffic = false, v1alpha1.TrafficClosed
		}, []v1alpha1.CertificateUse{v1alpha1.UseInternode}},
		"one is shown": {func(f *Facts) { f.Certificates[0].Served = "b" }, []v1alpha1.CertificateUse{v1alpha1.UseClients}},
		"one is bad": {func(f *Facts) {
			f.Certificates[0].Given, f.Certificates[0].Problem = "", "garbage"
		}, []v1alpha1.CertificateUse{v1alpha1.UseClients}},
		"the JVM has just begun": {func(f *Facts) { f.JVM.Ring.Mode = facts.ModeStarting }, nil},
		"the JVM is drained":     {func(f *Facts) { f.JVM.Ring.Mode = facts.ModeDraining }, nil},
	} {
		f := with1(serving(), func(f *Facts) { f.Certificates = []Certificate{renewed, forClients}; c.change(f) })
		var got []v1alpha1.CertificateUse
		d := Next(f, epoch)
		if a, is := d.Action.(ProveCertificates); is {
			got = a.Uses
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if s := d.Status.Certificates; len(s) == 0 || s[0].SerialNumber != "7" ||
			!s[0].NotAfter.Time.Equal(renewed.NotAfter) || s[0].Problem != f.Certificates[0].Problem {
			t.Errorf("%s: reported %+v", name, s)
		}
	}
}
