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
            (40 / 940 + 450 / 1e4, "Right, 8.76% of the time, and more exact"),
            (0.0876, "once in tau + delta seconds, while the page uses once in tau"),
            (40 / 940 + 470 / 1e4, "Right, 8.96% of the time, and more exact"),
        ],
        common_mistakes=[
            (40 / 900 + 900 / 1e4, "a whole interval"),
            (40 / 900, "only counted the writes"),
            (450 / 1e4, "only counted the lost work"),
            (490 / 1e4, "written once in M"),
        ],
    ),
    "calendar-a": Answers(
        right=[256 * 0.006 * 52 * 35 / 60, "46.6"],
        common_mistakes=[
            (256 * 0.006 * 52 * 50 / 60, "a whole interval per stop"),
            (256 * 0.006 * 52 * 15 / 60, "left out the restart"),
            (256 * 0.006 * 52 * 20 / 60, "left out the lost work"),
            (8 * 256 * 0.006 * 52 * 35 / 60, "node is 8 GPUs"),
            (256 * 0.006 * 52 * 35, "Those are minutes"),
            (256 * 0.006 * 52 * 35 / 60 / 24, "Those are days"),
            (256 * 6 * 52 * 35 / 60, "0.006 per day"),
            (256 * 0.006 * 52, "Those are the stops"),
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
            (3, "That's the average, rounded up"),
            (2.56, "That's the average. Give"),
            (10, "how many the two jobs need separately"),
            (5, "enough for one of the two"),
            (32, "counted every GPU as a node"),
            (8, "one more than you need"),
        ],
    ),
    "calendar-d": Answers(
        right=[OWN | {"promised_days": 30}],
        replies=[
            (OWN, "Right: at the worst failure rate, the run needs 19.3 days with few outages"),
            (OWN | OFTEN, "Right: at the worst failure rate, the run needs 19.2 days"),
            (OWN | OFTEN | {"save_minutes": "30 min"}, "Right"),
            (OWN | {"save_minutes": 1200}, "Right"),
            (OWN | {"spare_nodes": 2}, "Right"),
            (OWN | MANY | {"spare_nodes": 23}, "Right"),
            (OWN, "to the rent. Would you rather wait"),
            (OWN | {"spare_nodes": 0}, "At that rate the node stops every 62 days"),
        ],
        common_mistakes=[
            (OWN | {"spare_nodes": 2.5}, "only rent whole nodes"),
            (OWN | {"spare_nodes": 1000}, "too many. Keep at most 2"),
            (OWN | MANY | {"spare_nodes": 10}, "at least 23 spare nodes"),
            (OWN | MANY | {"spare_nodes": 47}, "Keep at most 46"),
            (OWN | {"write_seconds": 1e9}, "barely any time is left"),
            (OWN | {"save_minutes": 3000}, "lasts more than a day, you lose days, while published"),
            (OWN | {"gpus": 16, "spare_nodes": 0}, "you need at least 2 spare nodes"),
            (OWN | {"restart_minutes": 1}, "within three minutes"),
            (OWN | {"save_minutes": 1}, "too often: at the worst rate, your run takes"),
            (OWN | {"computing_days": 29}, "Even with few outages"),
            (OWN | {"computing_days": 31, "spare_nodes": 9}, "31.0 days of computing are already"),
            (OWN | {"measured": "yes"}, "measured='yes' is neither True nor False"),
            (OWN | {"measured": False}, "so you have to promise 34.9 days, but your limit is 30"),
            (
                OWN | {"computing_days": 24},
                "up to 64% longer than their steps, so you have to promise 39.4",
            ),
            (OWN | {"gpus": "16k"}, "a stop comes every 45.0 minutes"),
            (
                OWN | {"gpus": 1024, "spare_nodes": 20, "restart_minutes": 30},
                "240 minutes is too rarely",
            ),
            (OWN | {"gpus": "many"}, "isn't a number"),
            (OWN | {"calendar_days": 100, "promised_days": 60}, "60 days promise nothing"),
            *(
                (OWN | {"promised_days": days}, reply)
                for days, reply in [
                    (20, "20 days are too few to promise"),
                    (31, "31 days end after your last one, which is day 30. The run needs 19.3"),
                    ("soon", "promised_days='soon' isn't a number"),
                ]
            ),
            ({name: OWN[name] for name in OWN if name != "spare_nodes"}, "leaves out spare_nodes"),
        ],
        unanswered=[OWN | {"save_minutes": None}],
    ),
}
