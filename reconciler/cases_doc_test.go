package reconciler

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// proven are the scenarios of faults that users of such systems have met, by their row,
// and the tests that play them here: in this package, or in the one that is named.
var proven = map[string]string{
	"C3":  "TestACanceledRolloutIsNotStartedAgainByItself TestACancelIsRespectedByAJournalThatHasJustBegun",
	"C5":  "TestAParkOfNineDaysIsToldOnce TestAParkIsRemindedOfAtTheConfiguredInterval notify.TestC5NineDaysParkedAreOneReportAndTheReminders",
	"C11": "TestTheNextCommitStartsAfterACancel TestAParkIsRemindedOfAtTheConfiguredInterval",
	"E1":  "TestAFrozenReconcilerWritesNothingWhenItGoesOn TestWhatFreezesAtAnyBoundaryWritesNothingWhenItThaws",
	"E3":  "TestOldReadingsAfterAWriteMakeNothingTwice TestALostAnswerMakesNoSecondRollout",
	"E5":  "TestADeathAtAnyBoundaryLosesNothingAndDoesNothingTwice TestAJournalThatFailsOnceAtAnyCommitLosesNothing journal.TestKillInTheMidstOfCommitsLeavesNoHalfBatch",
	"E7":  "TestAStopBetweenMakingAndStartingStartsThatSameRollout TestADeathAtAnyBoundaryLosesNothingAndDoesNothingTwice",
	"E9":  "TestARestartOnlyReads TestARestartOverAHundredStacksReadsOnly TestTheFirstLooksAfterAStartAreSpread",
	"E11": "TestTheNextCommitStartsAfterACancel",
	"E13": "TestACommitThatComesInMidRolloutWaitsForItsEnd",
	"F1":  "gitsource.TestForcePushBackToAnOlderCommit TestHistoryForcedBackToARunningCommitWatchesItOn",
	"F3":  "gitsource.TestTenFetchesOfOneCommitEach",
	"F5":  "TestADeletedBranchTouchesNothing gitsource.TestDeletedBranchIsMissingAndRecovers",
	"F7":  "TestAnEmptyRepositoryAsksForNothing gitsource.TestEmptyRepositoryIsAStateAndNoFiles",
	"F9":  "TestARepositoryThatFailsHoldsUpNoOther TestWithoutGitNothingIsAppliedAndWhatRunsIsWatched gitsource.TestBlackHoleEndsAtTheDeadline",
	"F11": "gitsource.TestHostKeysArePinned",
	"F13": "gitsource.TestLinksOutOfTheTreeAreRefusedByName TestAShrinkingSetIsNotPruned",
	"F15": "TestAnotherAddressInheritsNoCommit gitsource.TestAnotherURLForgetsTheOldCommits",
	"F17": "TestAMovedTagNeedsAnApproval gitsource.TestMovedTag",
	"G1":  "TestDoubledAndLostWebhooksChangeNothing forge.TestTheSameDeliveryFiveTimesIsOneHint",
	"G3":  "forge.TestAGigabyteInChunksLeavesTheMemoryFlat forge.TestAWrongSignatureIsRefusedBeforeTheJSONIsLookedAt forge.TestASlowSenderIsCutOffAndHoldsNobodyUp",
	"G5":  "TestDoubledAndLostWebhooksChangeNothing",
	"H1":  "TestAPushThatDropsAChangeDropsItsPlan",
	"H3":  "TestWithoutGitNothingIsAppliedAndWhatRunsIsWatched TestALookUpThatFailsRefuses",
	"H5":  "TestAnApprovedPullRequestIsAppliedAfterItsMergeOnly TestAnOpenPullRequestWritesNothingAtTheEngine",
	"H7":  "TestCommentsAndTheHTTPDoorLetTheSamePeopleDoTheSame TestTheSameTableHoldsAtEveryDoor",
	"H9":  "TestACommitThatComesWhileOneWaitsForAnApprovalTakesItsPlace TestAnApprovalHoldsForItsDigestOnly",
	"H11": "TestAnOpenPullRequestWritesNothingAtTheEngine",
	"H13": "TestMergesThatOvertakeEachOtherAreNeverSilent TestEveryCommitIsRunToItsEndInOrder",
	"I1":  "TestAClosedPullRequestLeavesNothingBehind",
	"I3":  "TestAPushThatDropsAChangeDropsItsPlan",
	"I7":  "TestTheStatusNamesWhoHoldsTheLease journal.TestSQLiteConforms",
	"J1":  "TestTwoReconcilersNeverWriteOneEndpointInTurns TestWhatAnotherOwnerReconcilesIsLeftToIt",
	"J3":  "TestDriftIsNeverCorrectedAgainstARollout TestAHandEditIsToldOnceAndPutRightWhenAsked TestTheWayBackStartsWhereDriftIsCorrected",
	"J5":  "TestARenamedFileOrLabelDeletesNothing",
	"J7":  "TestAShrinkingSetIsNotPruned",
	"J9":  "TestACommitAndAHandEditAreToldApartInOnePlan",
	"J11": "TestASourceThatIsRemovedInMidRolloutStaysUntilItsEnd",
	"K1":  "TestAnOpenPullRequestWritesNothingAtTheEngine TestAPullRequestIsPlannedMergedAndFollowedToItsReceipt",
	"K3":  "notify.TestK3AnEventIsKnownByItsKeyAndNotByItsText",
	"K5":  "TestLongNamesHaveStatusesOfTheirOwn forge.TestContextsOfStatusesFitAndNeverCollide",
	"K7":  "TestLateMomentsOfAnOldRolloutAreToldUnderItsOwnCommit",
	"K9":  "TestThirtyPushesAreOneComment",
	"K11": "TestTextOfOthersIsInertEverywhere notify.TestK11AChatMessageHoldsNoMentionAndNoLinkOfOthers TestQuotesCodeAndListsNeverAct",
	"M1":  "TestAParkIsToldAtTheNextLook",
	"M3":  "TestAFirstApplyThatFailsIsMendedByTheNextCommit",
	"M5":  "TestMistakesAreToldAllAtOnceEachAtItsPlace TestAStackWaitsForOneOfAnotherRepository",
}

func TestEachScenarioNamesTestsThatAreThere(t *testing.T) {
	there := map[string]bool{}
	named := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for _, folder := range []string{".", "gitsource", "forge", "notify", "journal"} {
		files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, f := range files {
			text, err := os.ReadFile(f)
			require.NoError(t, err)
			for _, m := range named.FindAllStringSubmatch(string(text), -1) {
				there[strings.TrimPrefix(folder+".", "..")+m[1]] = true
			}
		}
	}
	for row, tests := range proven {
		for _, name := range strings.Fields(tests) {
			require.True(t, there[name], "%s: there is no %s", row, name)
		}
	}
}
