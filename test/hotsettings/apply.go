package hotsettings

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"helenus.io/helenus/internal/jolokia"
)

// ErrNotHot means that a setting cannot be changed on a running node, or not to this value; a
// restart of the JVM applies it.
var ErrNotHot = errors.New("needs a restart of Cassandra")

// hotSettings is All by key.
var hotSettings = func() map[string]Setting {
	byKey := map[string]Setting{}
	for _, setting := range All() {
		byKey[setting.Key] = setting
	}
	return byKey
}()

// Lookup looks a setting up by its key in cassandra.yaml. It is for that release, such as
// "5.0.6".
func Lookup(key, release string) (Setting, bool) {
	setting, found := hotSettings[key]
	return setting, found && (setting.Since == since41 || !strings.HasPrefix(release, since41+"."))
}

// wanted is a setting with the canonical value that it shall have.
type wanted struct {
	setting Setting
	value   string
}

// Apply gives the settings, by their keys in cassandra.yaml, these values on the running
// node, and returns the keys of those that it changed. Settings that have the value already are not
// changed, and every change is read back. An error says which setting, and may come after others
// were changed; to call it again is harmless. With ErrNotHot nothing was changed.
func Apply(ctx context.Context, jmx *jolokia.Client, release string, values map[string]any) ([]string, error) {
	targets, err := parseTargets(release, values)
	if err != nil {
		return nil, err
	}
	current, err := readSettings(ctx, jmx, targets)
	if err != nil {
		return nil, err
	}
	var changed []string
	var requests []jolokia.Request
	for _, key := range slices.Sorted(maps.Keys(targets)) {
		target := targets[key]
		if value, known := current[key]; known && value == target.value {
			continue
		}
		request, err := writeRequest(target, targets, current)
		if err != nil {
			return nil, fmt.Errorf("setting %s: %w: %w", key, ErrNotHot, err)
		}
		changed = append(changed, key)
		requests = append(requests, request)
	}
	if len(requests) == 0 {
		return nil, nil
	}
	answers, err := jmx.Do(ctx, requests...)
	if err != nil {
		return nil, fmt.Errorf("apply settings: %w", err)
	}
	for i, answer := range answers {
		if answer.Err != nil {
			return nil, fmt.Errorf("setting %s: %w", changed[i], answer.Err)
		}
	}
	return changed, verifySettings(ctx, jmx, changed, targets)
}

// Read reads the present values of the settings with these keys, in the canonical form of Form:
// text, with quantities in milliseconds, bytes, or bytes per second. Keys of settings that no bean
// shows are missing from the answer.
func Read(ctx context.Context, jmx *jolokia.Client, release string, keys []string) (map[string]string, error) {
	targets := make(map[string]wanted, len(keys))
	for _, key := range keys {
		setting, found := Lookup(key, release)
		if !found {
			return nil, fmt.Errorf("setting %s of Cassandra %s: %w", key, release, ErrNotHot)
		}
		targets[key] = wanted{setting: setting}
	}
	return readSettings(ctx, jmx, targets)
}

// parseTargets checks all values before anything is changed.
func parseTargets(release string, values map[string]any) (map[string]wanted, error) {
	targets := make(map[string]wanted, len(values))
	for _, key := range slices.Sorted(maps.Keys(values)) {
		setting, found := Lookup(key, release)
		if !found {
			return nil, fmt.Errorf("setting %s of Cassandra %s: %w", key, release, ErrNotHot)
		}
		value, err := setting.Form.canonical(values[key])
		if err != nil {
			return nil, fmt.Errorf("setting %s: %w", key, err)
		}
		if _, err := setting.Form.toBean(value, setting.Unit); err != nil {
			return nil, fmt.Errorf("setting %s: %w: %w", key, ErrNotHot, err)
		}
		targets[key] = wanted{setting: setting, value: value}
	}
	return targets, nil
}

// readSettings reads the present value of each target and of the other half of each pair.
func readSettings(ctx context.Context, jmx *jolokia.Client, targets map[string]wanted) (map[string]string, error) {
	read := map[string]Setting{}
	for key, target := range targets {
		if target.setting.Attribute != "" {
			read[key] = target.setting
		}
		if target.setting.Operation != "" {
			for _, half := range target.setting.PairKeys {
				read[half] = hotSettings[half]
			}
		}
	}
	keys := slices.Sorted(maps.Keys(read))
	requests := make([]jolokia.Request, 0, len(keys))
	for _, key := range keys {
		requests = append(requests, jolokia.Read(read[key].Bean, read[key].Attribute))
	}
	answers, err := jmx.Do(ctx, requests...)
	if err != nil {
		return nil, fmt.Errorf("read settings: %w", err)
	}
	values := make(map[string]string, len(keys))
	for i, key := range keys {
		var attributes map[string]json.RawMessage
		if err := answers[i].Decode(&attributes); err != nil {
			return nil, fmt.Errorf("read setting %s: %w", key, err)
		}
		value, err := read[key].Form.fromBean(attributes[read[key].Attribute], read[key].ReadUnit)
		if err != nil {
			return nil, fmt.Errorf("read setting %s: %w", key, err)
		}
		values[key] = value
	}
	return values, nil
}

// writeRequest sets one target. Of a pair it sets both halves: the one that is not to change keeps
// its value.
func writeRequest(target wanted, targets map[string]wanted, current map[string]string) (jolokia.Request, error) {
	setting := target.setting
	if setting.Operation == "" {
		value, err := setting.Form.toBean(target.value, setting.Unit)
		return jolokia.Write(setting.Bean, setting.Write, value), err
	}
	arguments := make([]any, len(setting.PairKeys))
	for i, key := range setting.PairKeys {
		canonical := current[key]
		if half, wanted := targets[key]; wanted {
			canonical = half.value
		}
		value, err := setting.Form.toBean(canonical, setting.Unit)
		if err != nil {
			return jolokia.Request{}, err
		}
		arguments[i] = value
	}
	return jolokia.Exec(setting.Bean, setting.Operation, arguments...), nil
}

// verifySettings reads back what was changed, where the bean shows it.
func verifySettings(ctx context.Context, jmx *jolokia.Client, changed []string, targets map[string]wanted) error {
	subset := make(map[string]wanted, len(changed))
	for _, key := range changed {
		subset[key] = targets[key]
	}
	current, err := readSettings(ctx, jmx, subset)
	if err != nil {
		return fmt.Errorf("read back: %w", err)
	}
	for _, key := range changed {
		if value, known := current[key]; known && value != targets[key].value {
			return fmt.Errorf("setting %s: %w: Cassandra took %s and now has %s", key, ErrNotHot, targets[key].value,
				value)
		}
	}
	return nil
}
