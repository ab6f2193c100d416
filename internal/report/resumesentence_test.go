// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

func TestResumeSentences(t *testing.T) {
	for want, text := range map[string]string{
		"job j: epoch (mixed): ranks have loaded different states: step is 1200 on 3 ranks, 1100 on 1 rank (3); told by 4 of 8 ranks (confidence 1.00)":                                                                                     `{"fields":[{"name":"step","held":[{"value":"1200","count":3,"ranks":[0,1,2]},{"value":"1100","count":1,"ranks":[3]}],"values":2,"told":4,"decided":true}],"fields_count":1,"ranks":4,"of":8}`,
		"job j: epoch (mixed): ranks have loaded different states: step is 7 on 4 ranks (the first 0, 1, 2), 9 on 4 ranks (the first 4, 5, 6); who is wrong is not decided (confidence 1.00)":                                               `{"fields":[{"name":"step","held":[{"value":"7","count":4,"ranks":[0,1,2,3]},{"value":"9","count":4,"ranks":[4,5,6,7]}],"values":2,"told":8}],"fields_count":1,"ranks":8}`,
		"job j: epoch (mixed): ranks have loaded different states: data cursor of replica dp 1 is a on 1 rank (0), b on 1 rank (1), c on 1 rank (2), and 2 more values; 1 more disagreement; who is wrong is not decided (confidence 1.00)": `{"fields":[{"name":"data_cursor","replica":"dp 1","held":[{"value":"a","count":1,"ranks":[0]},{"value":"b","count":1,"ranks":[1]},{"value":"c","count":1,"ranks":[2]},{"value":"d","count":1,"ranks":[3]}],"values":5,"told":5}],"fields_count":2,"ranks":5,"of":5}`,
		"job j: epoch (mixed) (confidence 1.00)": `{`,
	} {
		f := model.Finding{Kind: model.FindingEpoch, Class: model.ClassMixed, Op: model.OpResume, JobID: "j", Confidence: 1, Evidence: evidence.Text(text)}
		assert.Equal(t, want, Sentence(&f))
	}
}
