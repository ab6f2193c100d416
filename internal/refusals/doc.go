// SPDX-License-Identifier: Apache-2.0

// Package refusals tests what becomes of a component's data where the next component does not take them: it starts
// every receiver, connector and processor with next components that refuse, block, panic or are full, and compares what arrives, what is
// counted, what the sender gets and what the source still has with the tables in testdata.
package refusals
