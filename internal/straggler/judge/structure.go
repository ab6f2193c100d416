// SPDX-License-Identifier: Apache-2.0

package judge

// structure tells of what is nobody's fault, of other kernels for the same work, and of
// links. Ranks that are at fault are named before, and left out.
func (t *trial) structure() {
	t.stages()
	t.choices()
	t.works()
	t.trace()
	t.jobWide()
}
