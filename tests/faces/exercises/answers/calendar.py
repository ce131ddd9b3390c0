"""Chapter 10."""

from tests.faces.exercises.answers.table import Answers

OWN = {"gpus": 8, "computing_days": 18, "calendar_days": 30, "write_seconds": 60}
OWN |= {"restart_minutes": 600, "save_minutes": 240, "spare_nodes": 1, "measured": True}

OFTEN = {"restart_minutes": 30, "save_minutes": 250}
MANY = {"restart_minutes": 30, "save_minutes": 40, "gpus": 1000}


ANSWERS = {
    "calendar-cost": Answers(
        right=[40 / 900 + 450 / 1e4],
        replies=[
            (40 / 940 + 450 / 1e4, "right, 8.76 % of the time, and more exact"),
            (0.0876, "once in tau + delta seconds, while the page takes once in tau"),
            (40 / 940 + 470 / 1e4, "right, 8.96 % of the time, and more exact"),
        ],
        common_mistakes=[
            (40 / 900 + 900 / 1e4, "a whole interval"),
            (40 / 900, "the writes alone"),
            (450 / 1e4, "the lost work alone"),
            (490 / 1e4, "not once in M"),
        ],
    ),
    "calendar-a": Answers(
        right=[256 * 0.006 * 52 * 35 / 60, "46.6"],
        common_mistakes=[
            (256 * 0.006 * 52 * 50 / 60, "a whole interval for each stop"),
            (256 * 0.006 * 52 * 15 / 60, "leaves the restart out"),
            (256 * 0.006 * 52 * 20 / 60, "leaves the work out"),
            (8 * 256 * 0.006 * 52 * 35 / 60, "a node has 8"),
            (256 * 0.006 * 52 * 35, "these are minutes"),
            (256 * 0.006 * 52 * 35 / 60 / 24, "these are days"),
            (256 * 6 * 52 * 35 / 60, "0.006 a day"),
            (256 * 0.006 * 52, "these are the stops"),
        ],
    ),
    "calendar-b": Answers(
        right=["faster writes"],
        common_mistakes=[
            ("faster restarts", "it saves 2.0"),
            ("better nodes", "it saves 5.6"),
            ("twice the spares", "nothing waits for a node"),
        ],
    ),
    "calendar-c": Answers(
        right=[7, "7"],
        common_mistakes=[
            (3, "that is the average, rounded up"),
            (2.56, "that is the average; asked"),
            (10, "what they need apart"),
            (5, "enough for one of the two"),
            (32, "every GPU counts as a node"),
            (8, "one more than it takes"),
        ],
    ),
    "calendar-d": Answers(
        right=[OWN | {"promised_days": 30}],
        replies=[
            (OWN, "right: at the worst rate of failures it takes 19.3 days with few outages"),
            (OWN | OFTEN, "right: at the worst rate of failures it takes 19.2 days"),
            (OWN | OFTEN | {"save_minutes": "30 min"}, "right"),
            (OWN | {"save_minutes": 1200}, "right"),
            (OWN | {"spare_nodes": 2}, "right"),
            (OWN | MANY | {"spare_nodes": 23}, "right"),
            (OWN, "to the rent: would you rather wait"),
            (OWN | {"spare_nodes": 0}, "at that rate the node stops every 62 days"),
        ],
        common_mistakes=[
            (OWN | {"spare_nodes": 2.5}, "only whole nodes"),
            (OWN | {"spare_nodes": 1000}, "too many: keep at most 2"),
            (OWN | MANY | {"spare_nodes": 10}, "at least 23 spare nodes"),
            (OWN | MANY | {"spare_nodes": 47}, "keep at most 46"),
            (OWN | {"write_seconds": 1e9}, "leaves hardly any time"),
            (OWN | {"save_minutes": 3000}, "more than a day to restart"),
            (OWN | {"gpus": 16, "spare_nodes": 0}, "you need at least 2 spare nodes"),
            (OWN | {"restart_minutes": 1}, "within three minutes"),
            (OWN | {"save_minutes": 1}, "too often: at the worst rate the run takes"),
            (OWN | {"computing_days": 29}, "even with few outages"),
            (OWN | {"computing_days": 31, "spare_nodes": 9}, "31.0 days of computing alone are"),
            (OWN | {"measured": "yes"}, "measured='yes' is neither True nor False"),
            (OWN | {"measured": False}, "so promise 34.9 days, and you have 30"),
            (OWN | {"computing_days": 24}, "up to 64 % longer than their steps, so promise 39.4"),
            (OWN | {"gpus": "16k"}, "a stop comes every 45.0 minutes"),
            (
                OWN | {"gpus": 1024, "spare_nodes": 20, "restart_minutes": 30},
                "240 minutes is too seldom",
            ),
            (OWN | {"gpus": "many"}, "is no number"),
            (OWN | {"calendar_days": 100, "promised_days": 60}, "60 days promise nothing"),
            *(
                (OWN | {"promised_days": days}, reply)
                for days, reply in [
                    (20, "20 days are too few to promise"),
                    (31, "31 days are after your last one, which is 30: it takes 19.3"),
                    ("soon", "promised_days='soon' is no number"),
                ]
            ),
            ({name: OWN[name] for name in OWN if name != "spare_nodes"}, "leaves out spare_nodes"),
        ],
        unanswered=[OWN | {"save_minutes": None}],
    ),
}
