"""What clients saw: which member owned each partition when, and when a member was stopped.

Source is the client history, `history.jsonl`; a run without one has an empty table. It is shown
beside the brokers' logs: a member that was fenced or evicted believes that it owns its partitions
until a response says otherwise. `reports.judgement.clients.owners` judges it.
"""

from pyspark.sql import DataFrame

OWNERSHIP = """
    group STRING, partition STRING, member STRING, kind STRING, from_ms DOUBLE, until_ms DOUBLE,
    ended_as STRING, moved BOOLEAN, unowned_ms DOUBLE, overlap_ms DOUBLE, overlaps STRING
"""
"""The columns of `intervals`."""

MEMBERSHIP = """
SELECT
    at_ms, tie, member, group, kind, event, partitions,
    -- the second process of a member has the member's name with this suffix
    regexp_replace(member, '[.]duplicate$', '') AS name,
    -- how the ownership of a client ends with the client; a second `created` without an end of the
    -- first client means that it is unknown how that one ended
    CASE event
        WHEN 'fenced' THEN 'fenced' WHEN 'killed' THEN 'killed' WHEN 'created' THEN 'vanished'
        WHEN 'closing' THEN 'closed' WHEN 'closed' THEN 'closed'
    END AS gone_as,
    -- all windows are partitioned by group, so that rows are shuffled only once
    max(at_ms) OVER (PARTITION BY group) AS last_ms
FROM (
    SELECT
        *,
        -- the order of events with the same time; null or 0 for events not about membership
        array_position(
            array(
                'fenced', 'closing', 'revoked', 'lost', 'killed', 'closed', 'created', 'assigned'
            ),
            event
        ) AS tie
    FROM {lines}
)
WHERE tie > 0 AND group IS NOT NULL
"""

INTERVALS = """
WITH events AS (
    SELECT
        *,
        -- the first after it: backwards, so that Spark goes through the window only once
        min(IF(gone_as IS NULL, NULL, struct(at_ms, tie, gone_as AS ended_as))) OVER (
            PARTITION BY group, member ORDER BY at_ms DESC, tie DESC
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS gone
    FROM {membership}
),
by_partition AS (
    SELECT *, explode(partitions) AS partition FROM events
    WHERE event IN ('assigned', 'revoked', 'lost')
),
ended AS (
    SELECT
        *,
        coalesce(
            least(
                gone,
                lead(struct(at_ms, tie, event AS ended_as)) OVER (
                    PARTITION BY group, member, partition ORDER BY at_ms, tie
                )
            ),
            struct(last_ms AS at_ms, 0 AS tie, 'open' AS ended_as)
        ) AS end
    FROM by_partition
),
holdings AS (
    SELECT
        group, partition, member, name, kind,
        at_ms AS from_ms, end.at_ms AS until_ms, end.ended_as AS ended_as
    FROM ended WHERE event = 'assigned'
),
in_succession AS (
    SELECT
        *,
        lag(name) OVER succession != name AS moved,
        max(struct(until_ms, member)) OVER (
            PARTITION BY group, partition ORDER BY from_ms, until_ms, member
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS last
    FROM holdings
    WINDOW succession AS (PARTITION BY group, partition ORDER BY from_ms, until_ms, member)
)
SELECT
    group, partition, member, kind, from_ms, until_ms, ended_as,
    coalesce(moved, false) AS moved,
    -- to the precision of the history, so that sums do not depend on their order
    IF(from_ms > last.until_ms, round(from_ms - last.until_ms, 1), 0.0D) AS unowned_ms,
    IF(last.until_ms > from_ms, round(least(until_ms, last.until_ms) - from_ms, 1), 0.0D)
        AS overlap_ms,
    IF(last.until_ms > from_ms, last.member, NULL) AS overlaps
FROM in_succession
"""

STOPS = """
WITH lives AS (
    SELECT
        *,
        CASE WHEN event = 'assigned' THEN size(partitions)
             WHEN event IN ('revoked', 'lost') THEN -size(partitions) ELSE 0 END AS change,
        sum(IF(event = 'created', 1, 0)) OVER in_time AS life
    FROM {membership}
    WINDOW in_time AS (PARTITION BY group, member ORDER BY at_ms, tie)
),
known AS (
    SELECT
        *,
        sum(change) OVER in_life AS held,
        max(coalesce(event != 'created' AND gone_as IS NOT NULL, false)) OVER in_life AS over,
        coalesce(
            min(
                IF(event = 'assigned' OR gone_as IS NOT NULL,
                   struct(at_ms, tie, coalesce(gone_as, event) AS ended_as), NULL)
            ) OVER (
                PARTITION BY group, member ORDER BY at_ms DESC, tie DESC
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ),
            struct(last_ms AS at_ms, 0 AS tie, 'open' AS ended_as)
        ) AS end
    FROM lives
    WINDOW in_life AS (PARTITION BY group, member, life ORDER BY at_ms, tie)
)
SELECT
    group, member, kind, at_ms AS from_ms, end.at_ms AS until_ms, end.ended_as AS ended_as,
    -change AS partitions, round(end.at_ms - at_ms, 1) AS stopped_ms
FROM known
WHERE event IN ('revoked', 'lost') AND change < 0 AND held <= 0 AND NOT over
    AND end.ended_as != 'fenced'
"""


def membership(history: DataFrame) -> DataFrame:
    """Return what a history tells of members: that they came, went, were given or lost partitions.

    `name` is the identity that a member and its second process share.
    """
    return history.sparkSession.sql(MEMBERSHIP, lines=history)


def intervals(membership: DataFrame) -> DataFrame:
    """Return when each member owned each partition: one row for each assignment of a partition.

    A member owns a partition from `assigned` until the partition is revoked or lost, or the client
    ends; `closing` counts as the end, since the client polls no more. `ended_as` is `open` where
    ownership never ended. `moved` means that the last owner had another name: a static member that
    gets its own partitions back moves nothing, nor does a second process of the same member.
    `unowned_ms` is how long the partition had no owner before, `overlap_ms` how long it had two,
    and `overlaps` names the earlier owner.
    """
    return membership.sparkSession.sql(INTERVALS, membership=membership)


def stops(membership: DataFrame) -> DataFrame:
    """Return when members were stopped: they had partitions and lost all of them.

    A member loses them in a rebalance, or when it learns or assumes that it is no member any more.
    The stop lasts until its next assignment, even an empty one, or until its client ends. An eager
    assignor stops every member in every rebalance. A cooperative one revokes only what moves: the
    member goes on with the rest and is not stopped; `unowned_ms` of the intervals measures the time
    of the moved partitions for both. Starting up, closing and being fenced are no stops.
    """
    return membership.sparkSession.sql(STOPS, membership=membership)
