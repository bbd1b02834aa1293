package apiserver

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func configMapRules() rules {
	r := dataOnly()
	r.validate = func(object client.Object) (errs field.ErrorList) {
		m := object.(*corev1.ConfigMap)
		size := 0
		at := field.NewPath("data")
		for key, value := range m.Data {
			errs = append(errs, validKey(at, key)...)
			if _, twice := m.BinaryData[key]; twice {
				errs = append(errs, field.Invalid(at.Key(key), key, "duplicate of key present in binaryData"))
			}
			size += len(value)
		}
		for key, value := range m.BinaryData {
			errs = append(errs, validKey(field.NewPath("binaryData"), key)...)
			size += len(value)
		}
		if size > corev1.MaxSecretSize {
			errs = append(errs, field.TooLong(field.NewPath(""), "", corev1.MaxSecretSize))
		}
		return errs
	}
	r.validateUpdate = func(object, old client.Object) field.ErrorList {
		m, before := object.(*corev1.ConfigMap), old.(*corev1.ConfigMap)
		return frozen(m.Immutable, before.Immutable,
			map[string][2]any{"data": {m.Data, before.Data}, "binaryData": {m.BinaryData, before.BinaryData}})
	}
	return r
}

func secretRules() rules {
	r := dataOnly()
	r.fields = func(object client.Object) map[string]string {
		return map[string]string{"type": string(object.(*corev1.Secret).Type)}
	}
	r.defaults = func(object client.Object) {
		s := object.(*corev1.Secret)
		for key, value := range s.StringData {
			if s.Data == nil {
				s.Data = map[string][]byte{}
			}
			s.Data[key] = []byte(value)
		}
		s.StringData = nil
		if s.Type == "" {
			s.Type = corev1.SecretTypeOpaque
		}
	}
	r.validate = func(object client.Object) (errs field.ErrorList) {
		s := object.(*corev1.Secret)
		at, size := field.NewPath("data"), 0
		for key, value := range s.Data {
			errs = append(errs, validKey(at, key)...)
			size += len(value)
		}
		if size > corev1.MaxSecretSize {
			errs = append(errs, field.TooLong(at, "", corev1.MaxSecretSize))
		}
		if s.Type == corev1.SecretTypeTLS {
			for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
				if _, has := s.Data[key]; !has {
					errs = append(errs, field.Required(at.Key(key), ""))
				}
			}
		}
		return errs
	}
	r.validateUpdate = func(object, old client.Object) field.ErrorList {
		s, before := object.(*corev1.Secret), old.(*corev1.Secret)
		errs := immutable(s.Type, before.Type, field.NewPath("type"))
		return append(errs, frozen(s.Immutable, before.Immutable, map[string][2]any{"data": {s.Data, before.Data}})...)
	}
	return r
}

func validKey(at *field.Path, key string) (errs field.ErrorList) {
	for _, why := range validation.IsConfigMapKey(key) {
		errs = append(errs, field.Invalid(at.Key(key), key, why))
	}
	return errs
}

// frozen refuses changes of what was made immutable: now and before, by field.
func frozen(now, before *bool, fields map[string][2]any) (errs field.ErrorList) {
	if before == nil || !*before {
		return nil
	}
	const why = "field is immutable when `immutable` is set"
	if now == nil || !*now {
		errs = append(errs, field.Forbidden(field.NewPath("immutable"), why))
	}
	for name, is := range fields {
		if !reflect.DeepEqual(is[0], is[1]) {
			errs = append(errs, field.Forbidden(field.NewPath(name), why))
		}
	}
	return errs
}
