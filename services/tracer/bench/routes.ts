/** What the bench of the page times. */

const LARGE = "/runs/large-1";
const LISTS = [
  "",
  "sort=reward&order=asc",
  "sort=reward",
  "sort=advantage",
  "sort=time",
  "sort=tokens",
  "sort=turns",
  "sort=outcome",
  "sort=task",
  "sort=rollout&order=asc",
  "sort=time&offset=5000",
  "outcome=infra_failed",
  "minReward=0.95&sort=turns",
  "taskId=task:17",
  "q=train",
  "q=left",
  "q=timetable&sort=reward",
  "q=left%20-invalid&sort=time&order=asc",
  "q=%22number%205000%22",
  "q=nothingofthekind",
  "q=polite&place=judge",
  "q=left&place=tool",
  "noted=yes",
];

export const API_ROUTES: readonly string[] = [
  "/runs",
  LARGE,
  `${LARGE}/steps`,
  `${LARGE}/steps/100/timeline`,
  `${LARGE}/rollout-counts`,
  `${LARGE}/rollouts/train.100.3.5`,
  ...LISTS.map((query) => `${LARGE}/rollouts?limit=25&${query}`),
  `${LARGE}/cost`,
  `${LARGE}/rollouts/train.100.3.5/notes`,
  "/compare/tasks?runs=large-1,other-2",
  "/compare/tasks?runs=large-1",
  "/compare/task?runs=large-1,other-2&taskId=task:17",
  "/rollouts?limit=25&q=left",
  "/rollouts?limit=25&q=left&sort=reward",
  "/rollouts?limit=25&sort=time",
  "/rollouts?limit=25&sort=task",
  "/rollouts?limit=25&sort=advantage",
  "/rollouts?limit=25&q=%22number%205000%22",
];

export interface TimedView {
  readonly name: string;
  readonly place: string;
  /** What is drawn when the view is there. */
  readonly shown: string;
}

export const VIEWS: readonly TimedView[] = [
  { name: "run", place: LARGE, shown: ".rollouts tbody tr" },
  { name: "run, sorted", place: `${LARGE}?sort=reward`, shown: ".rollouts tbody tr" },
  { name: "run, searched", place: `${LARGE}?q=timetable`, shown: ".rollouts tbody tr" },
  { name: "compare", place: "/compare?runs=large-1,other-2", shown: "#compared-curve path.line" },
  { name: "search", place: "/search?q=timetable", shown: ".rollouts tbody tr" },
  { name: "rollout", place: `${LARGE}/rollouts/train.100.3.5`, shown: ".turn" },
];
