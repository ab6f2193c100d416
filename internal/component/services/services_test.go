// SPDX-License-Identifier: Apache-2.0

package services

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type host map[component.ID]component.Component

func (h host) GetExtensions() map[component.ID]component.Component { return h }

type speaker interface{ Speak() string }

type extension struct {
	component.StartFunc
	component.ShutdownFunc
}

func (extension) Speak() string { return "here" }

type other struct {
	component.StartFunc
	component.ShutdownFunc
}

func TestFind_EachExtension_IsFoundOrNamed(t *testing.T) {
	id := component.MustNewID("one")
	found, err := Find[speaker](host{id: extension{}}, id, "speaker")
	require.NoError(t, err)
	assert.Equal(t, "here", found.Speak())
	_, err = Find[speaker](host{}, id, "speaker")
	assert.EqualError(t, err, "find extension one: got none; want it in service::extensions")
	_, err = Find[speaker](host{id: other{}}, id, "speaker")
	assert.EqualError(t, err, "find extension one: got an extension of another type; want speaker")
}
