package stragglerconfig

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lockstep-otel/lockstep/internal/straggler"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A field that the engine gains and users cannot set fails here.
func TestEveryFieldOfTheEngineIsThere(t *testing.T) {
	c := NewDefaultConfig()
	assert.Equal(t, straggler.NewDefaultConfig(), c.Engine())

	v := reflect.ValueOf(&c).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.Bool:
			f.SetBool(!f.Bool())
		case reflect.Int, reflect.Int64:
			f.SetInt(f.Int() + 1)
		case reflect.Float64:
			f.SetFloat(f.Float() + 0.001)
		}
	}
	before, after := reflect.ValueOf(straggler.NewDefaultConfig()), reflect.ValueOf(c.Engine())
	for i := range before.NumField() {
		assert.NotEqual(t, before.Field(i).Interface(), after.Field(i).Interface(), before.Type().Field(i).Name)
	}
}

func TestValidate(t *testing.T) {
	c := NewDefaultConfig()
	require.NoError(t, c.Validate())
	c.Window = 0
	assert.EqualError(t, c.Validate(), "check window: got 0; want at least 1")
}
