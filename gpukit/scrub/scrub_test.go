// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"encoding/hex"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/fleet"
)

// answer has what nvidia-smi -q -x prints of one machine, shortened, with made-up names.
const answer = `<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log>
	<driver_version>580.159.04</driver_version>
	<gpu id="00000000:8D:00.0">
		<product_name>NVIDIA H200</product_name>
		<serial>1654923047561</serial>
		<uuid>GPU-8a0f3c57-91be-2d64-7f1e-b3ac95d2e841</uuid>
		<board_id>0x8d00</board_id>
		<board_part_number>699-2G520-0280-300</board_part_number>
		<platformInfo>
			<chassis_serial_number>SN-Q7K4</chassis_serial_number>
			<slot_number>23</slot_number>
			<gpu_fabric_guid>0xa9c3e15d72f4b806</gpu_fabric_guid>
		</platformInfo>
		<pci>
			<pci_bus>8D</pci_bus>
			<pci_device_id>233510DE</pci_device_id>
			<pci_bus_id>00000000:8D:00.0</pci_bus_id>
		</pci>
		<vbios_version>96.00.CF.00.01</vbios_version>
		<fabric><cluster_uuid>5d29e7c4-3f81-4a6b-9ce2-71b8d4a6f953</cluster_uuid><cliqueId>3</cliqueId></fabric>
		<note>see ethernet 4e:7b:c9:a5:2d:86 of gpu 00000000:8D:00.0, serial 1654923047561, on wolf17.example</note>
		<processes>
			<process_info><pid>4711</pid><process_name>/home/ada/my &amp; job/train_secret</process_name></process_info>
			<process_info><pid>4712</pid><process_name>[Not Found]</process_name></process_info>
		</processes>
	</gpu>
	<gpu id="00000000:9A:00.0">
		<serial>N/A</serial>
		<uuid>GPU-c6e2d9f4-58a3-4b7d-8e19-f25a6c3b9d70</uuid>
		<vbios_version>96.00.CF.00.02</vbios_version>
	</gpu>
</nvidia_smi_log>
`

var named = regexp.MustCompile(`1654923047561|8a0f3c57|b3ac95d2e841|8d00|8D:00|9A:00|>8D<|Q7K4|>23<a9c3e15d|5d29e7c4|4e:7b|ada|my &|train_secret|wolf17|c6e2d9f4`)

func TestScrub_NothingThatNamesTheMachineSurvives(t *testing.T) {
	s := New("wolf17.example")
	got, err := s.SMI([]byte(answer))
	require.NoError(t, err)
	assert.Empty(t, named.FindAllString(string(got), -1), "%s", got)
	for _, kept := range []string{"580.159.04", "NVIDIA H200", "699-2G520-0280-300", "233510DE", "96.00.CF.00.01", "<serial>N/A</serial>", "<pid>4711</pid>"} {
		assert.Contains(t, string(got), kept)
	}

	event, err := s.Text([]byte(`{"unit":"GPU-c6e2d9f4-58a3-4b7d-8e19-f25a6c3b9d70","host":"wolf17.example","command":"/home/ada/my & job/train_secret"}`))
	require.NoError(t, err)
	assert.Empty(t, named.FindAllString(string(event), -1), "%s", event)
	assert.Contains(t, string(got), `<uuid>`+regexp.MustCompile(`GPU-[0-9a-f-]+`).FindString(string(event))+`<`, "one value, one constant in all texts")
}

// Shapes stay, so that a reader that is tested on the fixture reads real answers.
func TestScrub_ShapesAndVersionsStay(t *testing.T) {
	got, err := New().SMI([]byte(answer))
	require.NoError(t, err)
	for _, shape := range []string{
		`<gpu id="0{8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]">`, `<serial>0{12}[0-9a-f]</serial>`, `<uuid>GPU-0{8}-0{4}-0{4}-0{4}-0{11}[0-9a-f]</uuid>`,
		`<board_id>0x000[0-9a-f]</board_id>`, `<pci_bus>[0-9a-f]{2}</pci_bus>`,
	} {
		assert.Regexp(t, shape, string(got))
	}
	before, err := fleet.ParseSMI([]byte(answer))
	require.NoError(t, err)
	after, err := fleet.ParseSMI(got)
	require.NoError(t, err)
	require.Len(t, after.Versions, len(before.Versions))
	units := map[string]bool{}
	for i, v := range after.Versions {
		assert.Equal(t, before.Versions[i].Version, v.Version)
		units[v.Unit] = true
	}
	assert.Len(t, units, 3, "two GPUs and the node")
	assert.Equal(t, strings.Count(answer, "\n"), strings.Count(string(got), "\n"))
}

func TestScrub_AnswersThatAreNoXML_AreRefused(t *testing.T) {
	for _, text := range []string{"Driver/library version <mismatch", "<a></b", "<gpu id=>"} {
		_, err := New().SMI([]byte(text))
		assert.ErrorContains(t, err, "scrub nvidia-smi: ", text)
	}
}

// What names the machine and cannot be replaced is an error, not a fixture.
func TestScrub_ValuesThatAreLeft_AreAnError(t *testing.T) {
	s := New("wolf17", "wolf18")
	s.constants["wolf17"] = "wolf18"
	_, err := s.Text([]byte("wolf17"))
	assert.ErrorContains(t, err, "got 1 values")
}

func TestScrub_AnswerOfTheFleetsTests_IsRead(t *testing.T) {
	b, err := os.ReadFile("../../internal/fleet/testdata/smi.xml")
	require.NoError(t, err)
	got, err := New().SMI(b)
	require.NoError(t, err)
	assert.NotContains(t, string(got), "11111111-1111")
}

// A name is replaced where it is a word, and not within others; one that is too short to
// tell machines apart stays.
func TestScrub_Names_AreWords(t *testing.T) {
	got, err := New("wolf", "vm").Text([]byte(`host wolf, wolf.example, "wolf": wolfram of vm`))
	require.NoError(t, err)
	assert.Equal(t, `host 0001, 0001.example, "0001": wolfram of vm`, string(got))
}

// A ring has ids as bytes.
func TestScrub_UUIDs_AreReplacedAsBytesToo(t *testing.T) {
	const id = "8a0f3c57-91be-2d64-7f1e-b3ac95d2e841"
	bytes := []byte("\x01\x8a\x0f\x3c\x57\x91\xbe\x2d\x64\x7f\x1e\xb3\xac\x95\xd2\xe8\x41\x02")
	for _, name := range []string{id, "GPU-" + id} {
		got, err := New(name).Text(bytes)
		require.NoError(t, err)
		assert.Len(t, got, len(bytes))
		assert.NotContains(t, string(got), "\x8a\x0f\x3c\x57")
		assert.Equal(t, byte(1), got[0])
		assert.Equal(t, byte(2), got[len(got)-1])
	}
}

func TestScrub_AddressesAndFolders(t *testing.T) {
	got, err := New("10.1.22.3", "fe80::4c7b:c9ff:fea5:2d86", "/home/ada").Text([]byte("10.1.22.3:28028 fe80::4c7b:c9ff:fea5:2d86 /home/ada/venv 110.1.22.3"))
	require.NoError(t, err)
	assert.NotContains(t, string(got), "ada")
	assert.NotContains(t, string(got), "2d86")
	assert.NotRegexp(t, `^10\.1`, string(got))
	assert.Contains(t, string(got), " 110.1.22.3", "another address")
}

func TestScrub_ThisMachine_IsNotNamed(t *testing.T) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Skipf("this system has no boot id: %v", err)
	}
	id := strings.TrimSpace(string(boot))
	got, err := ThisMachine().Text([]byte("boot " + id + " with GPU-8a0f3c57-91be-2d64-7f1e-b3ac95d2e841"))
	require.NoError(t, err)
	assert.NotContains(t, string(got), id)
	assert.NotContains(t, string(got), "8a0f3c57")
}

// What runs, numbers and common names stand for something else in other texts.
func TestScrub_WhatNamesNothing_Stays(t *testing.T) {
	s := New("gpu", "100", "localhost", "python3")
	_, err := s.SMI([]byte(`<nvidia_smi_log><gpu id="00000000:8D:00.0"><serial>1100000</serial><processes><process_info><process_name>python</process_name></process_info></processes></gpu></nvidia_smi_log>`))
	require.NoError(t, err)
	const text = `name python, gpu 100, path /usr/lib/python3.12, at 911000002000`
	got, err := s.Text([]byte(text))
	require.NoError(t, err)
	assert.Equal(t, text, string(got))
}

// Constants are no values of others, and one that takes another's place is not replaced
// again.
func TestScrub_ManyDevices_KeepApart(t *testing.T) {
	var answer, want strings.Builder
	answer.WriteString("<nvidia_smi_log>")
	for i := range 12 {
		fmt.Fprintf(&answer, `<gpu id="00000000:%02x:00.0"><serial>10000%02d</serial></gpu>`, i, i)
		fmt.Fprintf(&want, "00000000:%02x:00.0 10000%02d\n", i, i)
	}
	answer.WriteString("</nvidia_smi_log>")
	s := New()
	_, err := s.SMI([]byte(answer.String()))
	require.NoError(t, err)
	got, err := s.Text([]byte(want.String()))
	require.NoError(t, err)
	lines := map[string]bool{}
	for line := range strings.Lines(string(got)) {
		lines[line] = true
		assert.NotContains(t, want.String(), line)
	}
	assert.Len(t, lines, 12)
}

// An id with and without its prefix, and as bytes, is one.
func TestScrub_AnIDInAllItsForms_IsOne(t *testing.T) {
	s := New()
	xml, err := s.SMI([]byte(`<l><uuid>GPU-8a0f3c57-91be-2d64-7f1e-b3ac95d2e841</uuid></l>`))
	require.NoError(t, err)
	id := regexp.MustCompile(`GPU-([0-9a-f-]+)`).FindStringSubmatch(string(xml))[1]
	text, err := s.Text([]byte("8a0f3c57-91be-2d64-7f1e-b3ac95d2e841"))
	require.NoError(t, err)
	assert.Equal(t, id, string(text))
	raw, err := s.Text([]byte("\x8a\x0f\x3c\x57\x91\xbe\x2d\x64\x7f\x1e\xb3\xac\x95\xd2\xe8\x41"))
	require.NoError(t, err)
	assert.Equal(t, strings.ReplaceAll(id, "-", ""), hex.EncodeToString(raw))
}

// In what is no text, the byte before a name is often its length.
func TestScrub_BinaryFiles_LengthsHideNothing(t *testing.T) {
	got, err := New("wolf17.example").Text([]byte("\xff2wolf17.exampleq"))
	require.NoError(t, err)
	assert.NotContains(t, string(got), "wolf")
}

func TestScrub_Users(t *testing.T) {
	s := New("ada")
	s.LearnFolder("/data/team seven/runs")
	s.LearnFolder("/usr/lib/python3")
	got, err := s.Text([]byte("/tmp/torchinductor_ada /data/ada/venv /usr/lib/python3 /data/team seven/runs adapter"))
	require.NoError(t, err)
	assert.NotRegexp(t, `\bada\b|_ada|seven`, string(got))
	assert.Contains(t, string(got), " /usr/lib/python3 ")
	assert.Contains(t, string(got), "adapter")
}

func TestDomains(t *testing.T) {
	assert.Equal(t, []string{"acme.example", "lab.acme.example"}, domains("nameserver 10.0.0.1\nsearch acme.example lab.acme.example\n"))
}
