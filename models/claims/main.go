// Claimcheck explores every interleaving of the account pool's claim protocol within small scopes.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
)

func main() {
	only := flag.String("only", "", "run the scenarios whose name contains one of these comma-separated texts")
	isSmall := flag.Bool("small", false, "run the small scope")
	isWrong := flag.Bool("wrong", false, "run the wrong variants: each has to be found")
	isLarge := flag.Bool("large", false, "run also the scenarios that are passed over for their size")
	isList := flag.Bool("list", false, "print the names of the scenarios instead of running them")
	isSteps := flag.Bool("steps", false, "print the model's steps with the protocol's labels instead of running")
	verbose := flag.Bool("v", false, "with -wrong: print the shortest trace to each mistake")
	isUnfenced := flag.Bool("unfenced", false, "a repeated claim of a known holder writes nothing")
	isUnfolded := flag.Bool("unfolded", false, "tell equal members apart")
	maxStates := flag.Int("max", 100_000_000, "give up a scenario above this many states")
	flag.Parse()

	if *isSteps {
		printSteps()
		return
	}
	variants := chosen(*isWrong, *isSmall, *isLarge, strings.Split(*only, ","))
	if len(variants) == 0 {
		fmt.Fprintf(os.Stderr, "claimcheck: no scenario is named like %q; see claimcheck -list\n", *only)
		os.Exit(2)
	}
	limits := Limits{MaxStates: *maxStates, FoldMembers: !*isUnfolded}
	failed, total := 0, Result{}
	for _, variant := range variants {
		if *isList {
			fmt.Println(variant.Name)
			continue
		}
		variant.UnfencedReclaims = *isUnfenced && !variant.Faults.LateWrites && !variant.hasFences()
		result := explore(&variant.Scenario, limits)
		isRight := !result.IsTruncated && variant.isAsExpected(result.Violation)
		printResult(variant.Name, result)
		if !isRight || *isWrong && *verbose {
			printTrace(result.Trace)
		}
		if !isRight {
			failed++
		}
		total.States += result.States
		total.Transitions += result.Transitions
		total.Duration += result.Duration
	}
	if *isList {
		return
	}
	fmt.Printf("total: %d scenarios, %d states, %d transitions, %.1f s, %d not as expected\n",
		len(variants), total.States, total.Transitions, total.Duration.Seconds(), failed)
	if failed > 0 {
		os.Exit(1)
	}
}

// chosen gives the variants to run: the right protocol's scenarios are variants without a mistake.
func chosen(isWrong, isSmall, isLarge bool, only []string) (all []WrongVariant) {
	if isWrong {
		all = wrongVariants()
	} else {
		for _, scenario := range scenarios() {
			all = append(all, WrongVariant{Scenario: scenario})
		}
	}
	kept := all[:0]
	for _, variant := range all {
		if !isLarge && slices.Contains(tooLarge, variant.Name) {
			continue
		}
		for _, text := range only {
			if strings.Contains(variant.Name, text) && (!isSmall || slices.Contains(smallScope, variant.Name)) {
				kept = append(kept, variant)
				break
			}
		}
	}
	return kept
}

func (variant *WrongVariant) isAsExpected(violation *Violation) bool {
	if variant.Violates == "" {
		return violation == nil
	}
	return violation != nil && violation.Invariant == variant.Violates
}

func printResult(name string, result Result) {
	verdict := "holds"
	switch {
	case result.Violation != nil:
		verdict = fmt.Sprintf("%s, %d steps", result.Violation, len(result.Trace))
	case result.IsTruncated:
		verdict = "GIVEN UP"
	}
	fmt.Printf("%-52s  %9d states  %10d transitions  ", name, result.States, result.Transitions)
	fmt.Printf("depth %3d  ends %4d  orphan ends %3d  ", result.Depth, result.Ends, result.OrphanEnds)
	fmt.Printf("longest tail %3d  %6.1f s  %s\n", result.LongestTail, result.Duration.Seconds(), verdict)
}

func printTrace(trace []string) {
	for i, line := range trace {
		fmt.Printf("  %3d. %s\n", i+1, line)
	}
}

func printSteps() {
	for _, step := range steps {
		if step.call != "" {
			fmt.Printf("%s\t%s\n", step.labels, step.call)
		}
	}
}
