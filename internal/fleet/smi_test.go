// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func sample(tb testing.TB) []byte {
	tb.Helper()
	b, err := os.ReadFile("testdata/smi.xml")
	require.NoError(tb, err)
	return b
}

func TestParseSMI(t *testing.T) {
	r, err := ParseSMI(sample(t))
	require.NoError(t, err)
	const board = "NVIDIA H100 80GB HBM3 692-2G520-0200-000"
	const first, second = "GPU-11111111-1111-1111-1111-111111111111", "GPU-22222222-2222-2222-2222-222222222222"
	assert.Equal(t, map[string]string{
		"nvidia_kernel_driver": "550.90.07", "nvidia_user_driver": "550.90.07", "cuda": "12.4",
		"gpu_vbios " + board + " " + first: "96.00.89.00.01", "gpu_vbios " + board + " " + second: "96.00.99.00.01",
		"gpu_gsp_firmware " + board + " " + first: "550.90.07", "gpu_gsp_firmware " + board + " " + second: "550.90.07",
	}, versions(r))
}

func smi(inner string) string { return "<nvidia_smi_log>" + inner + "</nvidia_smi_log>" }

func TestSMIsGaps(t *testing.T) {
	r, err := ParseSMI([]byte(smi("<driver_version>N/A</driver_version><gpu><vbios_version>[N/A]</vbios_version></gpu><gpu><vbios_version> 1.2 </vbios_version></gpu>")))
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"gpu_vbios gpu 1": "1.2"}, versions(r), "a GPU that has no name has its place")
	r, err = ParseSMI([]byte(smi(strings.Repeat("<gpu><uuid>u</uuid><vbios_version>1</vbios_version></gpu>", maxGPUs+2))))
	require.NoError(t, err)
	assert.Len(t, r.Versions, maxGPUs)
	assert.Equal(t, 2, r.LeftOut)
}

func TestWhatIsNoAnswerOfSMI(t *testing.T) {
	long := strings.Repeat("7", maxText+1)
	for in, want := range map[string]string{
		"":                                 "read nvidia-smi -q -x: byte 0: top: got the end of the answer; want the end of nvidia_smi_log",
		"No devices were found":            "read nvidia-smi -q -x: byte 21: top: got the end of the answer; want the end of nvidia_smi_log",
		"<html></html>":                    `read nvidia-smi -q -x: byte 6: top: got "html"; want nvidia_smi_log`,
		"<nvidia_smi_log><gpu><uuid>GPU-1": "read nvidia-smi -q -x: byte 32: nvidia_smi_log.gpu[0].uuid: XML syntax error on line 1: unexpected EOF",
		smi("<gpu></gpu><gpu><vbios_version>" + long + "</vbios_version></gpu>"): "read nvidia-smi -q -x: byte 560: nvidia_smi_log.gpu[1].vbios_version: got 513 bytes; want at most 512",
		smi("<driver_version>1<b/></driver_version>"):                            `read nvidia-smi -q -x: byte 37: nvidia_smi_log.driver_version: got element "b"; want text`,
		smi("<cuda_version>1\x7f</cuda_version>"):                                `read nvidia-smi -q -x: byte 47: nvidia_smi_log.cuda_version: got "1\x7f"; want one line of visible ASCII`,
		smi("") + smi(""): `read nvidia-smi -q -x: byte 49: top: got "nvidia_smi_log" behind the end; want nothing`,
		smi("&lol;"):      "read nvidia-smi -q -x: byte 21: nvidia_smi_log: XML syntax error on line 1: invalid character entity &lol;",
	} {
		_, err := ParseSMI([]byte(in))
		require.EqualError(t, err, want)
	}
	_, err := ParseSMI([]byte(strings.Repeat("<nvidia_smi_log>", maxDepth+1)))
	require.ErrorContains(t, err, "got elements more than 32 deep; want at most that")
	_, err = ParseSMI(make([]byte, MaxSMI+1))
	require.EqualError(t, err, fmt.Sprintf("read nvidia-smi -q -x: got %d bytes; want at most %d", MaxSMI+1, MaxSMI))
}

// Cut anywhere, the answer is refused, and not taken for that of a node with fewer GPUs.
func TestSMICutAnywhere(t *testing.T) {
	whole := []byte(strings.TrimSpace(string(sample(t))))
	for n := range len(whole) {
		_, err := ParseSMI(whole[:n])
		require.Error(t, err, "%d bytes", n)
	}
}

func FuzzParseSMI(f *testing.F) {
	f.Add(sample(f))
	f.Add([]byte(smi("<gpu><uuid><![CDATA[x]]></uuid></gpu><!-- -->")))
	f.Fuzz(func(t *testing.T, answer []byte) {
		r, err := ParseSMI(answer)
		if err != nil {
			require.Nil(t, r)
			return
		}
		require.LessOrEqual(t, len(r.Versions), 3+2*maxGPUs)
		for _, v := range r.Versions {
			require.NotEmpty(t, v.Version)
			for _, s := range []string{v.Version, v.Unit} {
				clean, err := text(s)
				require.NoError(t, err)
				require.Equal(t, s, clean)
			}
		}
	})
}
