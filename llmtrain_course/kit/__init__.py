"""What all chapters share: drawings, panels, controls, exercises, the widget."""
