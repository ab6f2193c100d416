// SPDX-License-Identifier: Apache-2.0

package stragglerconfig

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
	"github.com/lockstep-otel/lockstep/internal/straggler"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A field that the engine gains and users cannot set fails here.
func TestEveryFieldOfTheEngineIsThere(t *testing.T) {
	c := NewDefaultConfig()
	want := straggler.NewDefaultConfig()
	want.MaxMemory = bounded.Memory() / 4 // a recording is read whole, a collector lives with others
	want.JudgeEvery = 1                   // of a recording one judgement is of many steps, a collector's are of one
	assert.Equal(t, want, c.Engine())

	v := reflect.ValueOf(&c).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.Bool:
			f.SetBool(!f.Bool())
		case reflect.Int, reflect.Int64:
			f.SetInt(f.Int() + 1)
		case reflect.Float64:
			f.SetFloat(f.Float() + 0.001)
		case reflect.String:
			f.SetString(evidence.MethodKAIR)
		}
	}
	assert.Equal(t, int64(1<<20), c.Engine().MaxMemory, "MiB")
	before, after := reflect.ValueOf(straggler.NewDefaultConfig()), reflect.ValueOf(c.Engine())
	for i := range before.NumField() {
		switch before.Type().Field(i).Name {
		case "Brief", "KAIRPlus":
			continue // what step reports hold is the face's choice, and KAIRPlus the scoreboard's
		}
		assert.NotEqual(t, before.Field(i).Interface(), after.Field(i).Interface(), before.Type().Field(i).Name)
	}
}

func TestValidate(t *testing.T) {
	c := NewDefaultConfig()
	require.NoError(t, c.Validate())
	c.Window = 0
	require.EqualError(t, c.Validate(), "check window: got 0; want at least 1")
	c.Window = 2_000_000_000
	require.EqualError(t, c.Validate(), "check window: got 2000000000; want at most 1024")
	c = NewDefaultConfig()
	c.MaxMemoryMiB = -1
	require.EqualError(t, c.Validate(), "check max_memory_mib: got -1; want 0 to 1099511627776")
	c = NewDefaultConfig()
	c.Method = evidence.MethodKAIR
	require.NoError(t, c.Validate())
	c.Method = "ks"
	assert.EqualError(t, c.Validate(), `check method: got "ks"; want lockstep or kair`)
}
